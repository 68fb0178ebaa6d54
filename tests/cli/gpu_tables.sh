# The tables of the GPU tests without a GPU: each row names a kernel of the library with arguments that it takes, every kernel has a
# row, and, with the processor in the GPU's place, what differs is seen.
# TIMEOUT: 300
export DEVICE=cpu KERNELS=$ROOT/kernels
. "$ROOT/tests/gpu/lib.sh"
again() { # a row's second run, which would only repeat the first
  local word
  [[ $* == *--device* ]] || { command ditron "$@"; return; }
  for word; do
    case $word in *=gpu-*.npy) cp "cpu-${word#*=gpu-}" "${word#*=}" ;; esac
  done
}
for t in "$ROOT"/tests/gpu/*.table; do
  (ditron() { again "$@"; }; table "$t") >said || { grep -v '^same' said; exit 1; }
done

# collectives.py and its like run over several ranks
for file in "$ROOT"/kernels/*.py; do
  case $(basename "$file") in collectives.py | lowlevel.py | moe.py | overlap.py | overlap_raw.py | tile_order.py) continue ;; esac
  for kernel in $(sed -n 's/^def \([a-z_0-9]*_kernel\)(.*/\1/p' "$file"); do
    grep -qw "$(basename "$file"):$kernel" "$ROOT"/tests/gpu/*.table || { echo "no row for $kernel of $file"; exit 1; }
  done
done

# one element that differs in each type; another length; a NaN; a run that fails; a row that names nothing
"$PYTHON" - <<'P'
import numpy as np
for name, kind in (("f32", "f4"), ("f16", "f2"), ("i32", "i4"), ("i64", "i8")):
    x = np.array([1, 2, 1000, 0], kind)
    y = x.copy()
    y[2] += 8
    np.save(f"{name}-a.npy", x), np.save(f"{name}-b.npy", y), np.save(f"{name}-c.npy", x[:3])
half = np.array([1.5, -0.0, 6e-8, 65504, -np.inf, 1e-4], "f2")
np.save("half.npy", half), np.save("nan.npy", np.array([1, np.nan], "f4")), np.save("same-nan.npy", np.array([1, np.nan], "f4"))
open("half.txt", "w").write("".join(f"{float(v):.9g}\n" for v in half))
P
for t in f32 f16 i32 i64; do
  same "" 0 $t-a.npy $t-a.npy
  same "" 0.01 $t-a.npy $t-b.npy
  if same "" 0.001 $t-a.npy $t-b.npy >said; then echo "$t: 1000 and 1008 were the same"; exit 1; fi
  grep -q 'element 2: 1000 on the processor, 1008 on the GPU' said || { cat said; exit 1; }
  if same "" 0 $t-a.npy $t-c.npy >said; then echo "$t: another length was the same"; exit 1; fi
done
if same "" 1 nan.npy same-nan.npy >said; then echo "NaN was the same"; exit 1; fi
if same "" 1 f32-a.npy i32-a.npy >said; then echo "other types were the same"; exit 1; fi
diff <(values f16 half.npy) half.txt

cat >bad.table <<'T'
%add x_ptr=ones:f32[8] out_ptr=zeros:f32[8] n_elements=8 BLOCK_SIZE=16 # what both rows share
0 out_ptr elementwise.py:add_kernel 1 %add
     y_ptr=ones:f32[8]
0 out_ptr elementwise.py:add_kernel 1 %add y_ptr=nonsense:f32[8]
T
if table bad.table >said; then echo "a run that failed was passed over"; exit 1; fi
grep -q 'bad.table: 1 of 2 the same' said || { cat said; exit 1; }
if (table <(echo '0 out_ptr elementwise.py:add_kernel 1 %nothing')) >said; then exit 1; fi
grep -q 'nothing is called %nothing' said || { cat said; exit 1; }
# a GPU that is wrong: the same kernel with another seed
ditron() { case "$*" in *--device*) command ditron "$@" --seed 1 ;; *) command ditron "$@" ;; esac }
if (table <(echo '1e-6 out_ptr elementwise.py:add_kernel 1 x_ptr=randn:f32[8] y_ptr=ones:f32[8] out_ptr=zeros:f32[8] n_elements=8 BLOCK_SIZE=16')) \
  >said; then echo "other numbers were the same"; exit 1; fi
grep -q 'in out_ptr' said || { cat said; exit 1; }
