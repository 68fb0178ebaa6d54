# Images and packs as files: of another processor, cut short, of another kind; and plans in processes without a compiler.
# TIMEOUT: 300
export DITRON_KERNELS=$ROOT/kernels
sig="x_ptr=*f32, y_ptr=*f32, out_ptr=*f32, n_elements=i32, BLOCK_SIZE=1024"
cc -std=c11 -Wall -Wextra -Werror -I"$ROOT/include" "$ROOT/examples/c/ahead_of_time.c" -o load -L"$BUILD" -lditron-rt -Wl,-rpath,"$BUILD"
ditron compile "$ROOT/kernels/elementwise.py:add_kernel" --target x86-64 --sig "$sig" -o add.dtk
./load add.dtk | grep -x 'add: 5000 elements, 0 wrong'

if ! grep -qw avx512f /proc/cpuinfo; then
  ditron compile "$ROOT/kernels/elementwise.py:add_kernel" --target x86-64-v4 --sig "$sig" -o other.dtk
  if ./load other.dtk 2> err; then exit 1; fi
  grep -q "kernel 'add_kernel' needs a processor with .*avx512" err
fi
size=$(stat -c %s add.dtk)
for n in 0 1 7 8 100 $((size / 2)) $((size - 1)); do
  head -c "$n" add.dtk > cut.dtk
  if ./load cut.dtk 2> err; then exit 1; fi
  test -s err
done
cp "$ROOT/README.md" text.dtk
if ./load text.dtk 2> err; then exit 1; fi
grep -qi 'image' err

ditron pack -o all.dtp --op all_gather --variant ring --op all_reduce --variant one_shot --ranks 2 --m 100 2> err && exit 1
grep -q "all_gather has no variant 'one_shot'" err
test ! -e all.dtp # outputs are written on success only
ditron pack -o all.dtp --op all_gather --variant ring --ranks 2 --m 100
ditron pack --list all.dtp | grep -q '^collectives.py:all_gather_ring_kernel|x_ptr=\*f32'
ditron bench all_gather --variant ring --ranks 3 --m 77 --rounds 1 --pack all.dtp
ditron bench all_gather --variant push --ranks 3 --m 77 --rounds 1 --pack all.dtp 2> err && exit 1
grep -q "the pack has no kernel 'collectives.py:all_gather_push_kernel" err
size=$(stat -c %s all.dtp)
for n in 0 9 $((size / 3)) $((size - 1)); do
  head -c "$n" all.dtp > cut.dtp
  ditron pack --list cut.dtp > out 2> err && exit 1
  test -s err
  ditron bench all_gather --variant ring --ranks 2 --m 10 --rounds 1 --pack cut.dtp > out 2> err && exit 1
  test -s err
done
exit 0
