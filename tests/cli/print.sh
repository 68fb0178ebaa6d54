# What kernels print: "prefix: value" however the prefix is written, element by element, the same compiled and interpreted.
cat >k.py <<'K'
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, n):
    x = tl.load(x_ptr + tl.arange(0, 4))
    tl.device_print("x is", x)
    tl.device_print("pair:", x, x.to(tl.int32) + 1)
    tl.device_print("mixed: ", x, n)
    tl.device_print("", n)
    print("plain", n, n + 1)
    tl.device_print("alone")
K
for how in --warps=4 --warps=1 --interp; do
  ditron run k.py:k --grid 1 --quiet $how x_ptr=arange:f32[4] n=7 >out
  {
    for i in 0 1 2 3; do echo "[0] pid (0, 0, 0) idx ($i) x is: $i.000000"; done
    for i in 0 1 2 3; do
      echo "[0] pid (0, 0, 0) idx ($i) pair: (operand 0) $i.000000"
      echo "[0] pid (0, 0, 0) idx ($i) pair: (operand 1) $((i + 1))"
    done
    for i in 0 1 2 3; do
      echo "[0] pid (0, 0, 0) idx ($i) mixed: (operand 0) $i.000000"
      echo "[0] pid (0, 0, 0) idx ($i) mixed: (operand 1) 7"
    done
    echo "[0] pid (0, 0, 0) 7"
    echo "[0] pid (0, 0, 0) plain: (operand 0) 7"
    echo "[0] pid (0, 0, 0) plain: (operand 1) 8"
    echo "[0] pid (0, 0, 0) alone"
  } >want
  diff want out
done
