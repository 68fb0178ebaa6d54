# The disk cache: unwritable, off, damaged, shared by processes that compile the same at the same time; edited sources.
# TIMEOUT: 300
cp "$ROOT/kernels/elementwise.py" k.py
add() { ditron run k.py:add_kernel --grid 2 --quiet "$@" x_ptr=arange:f32[100] y_ptr=ones:f32[100] out_ptr=zeros:f32[100] n_elements=100 \
  BLOCK_SIZE=64 --out out_ptr=out.npy; }
right() { "$PYTHON" -c "import numpy as np, sys; x = np.load('out.npy'); sys.exit(not np.array_equal(x, np.arange(100) + ${1:-1}))"; rm out.npy; }
entries() { find "$1" -name '*.dtc' | wc -l; }

# filled once, then used: nothing new appears
export DITRON_CACHE_DIR=$PWD/cache
add && right
n=$(entries cache)
test "$n" -ge 2
add && right
test "$(entries cache)" = "$n"
# an edited source is compiled anew
sed -i 's/x + y/x + y + 1/' k.py
add && right 2
sed -i 's/x + y + 1/x + y/' k.py
add && right

# a damaged entry is rebuilt: emptied, cut, changed in the middle, another file
for harm in 'truncate -s 0' 'truncate -s 100' "sed -i 's/./X/3'" 'cp k.py'; do
  find cache -name '*.dtc' | while read -r f; do
    size=$(stat -c %s "$f")
    case $harm in
      cp*) cp k.py "$f" ;;
      sed*) printf X | dd of="$f" bs=1 seek=$((size / 2)) conv=notrunc status=none ;;
      *) $harm "$f" ;;
    esac
  done
  add 2> err && right
  test ! -s err || { cat err; exit 1; }
done
find cache -name '*.dtc' -size -101c | { ! grep .; }

# off: nothing is written
DITRON_CACHE_OFF=1 DITRON_CACHE_DIR=$PWD/none add && right
test ! -e none

# unwritable: one warning, and on
touch file
DITRON_CACHE_DIR=$PWD/file/below add 2> err && right
cat err
grep -c "file/below' cannot be written" err | grep -x 1
grep -q 'nothing is kept' err
DITRON_CACHE_DIR=$PWD/file/below ditron bench ag_gemm --ranks 2 --m 64 --n 64 --k 64 --rounds 1 > /dev/null 2> err
grep -c 'cannot be written' err | grep -x 1

# many processes at once, on an empty cache
rm -rf cache
for i in 1 2 3 4 5 6; do
  (mkdir p$i && cd p$i && cp ../k.py . && add > /dev/null && right) & pids[i]=$!
done
for i in 1 2 3 4 5 6; do wait "${pids[i]}"; done
for i in 1 2 3 4 5 6; do add & pids[i]=$!; done # these share the very entry
for i in 1 2 3 4 5 6; do wait "${pids[i]}"; done
right
find cache -name '*.tmp*' | { ! grep .; }
