# Loops that poll but do more than look have a deadline too: at program level, at thread level, decided in the body.
cat > k.py <<'END'
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import ld, st, tid


@triton.jit
def program(flag_ptr, out_ptr):
    while tl.load(flag_ptr, volatile=True) != 1:
        tl.store(out_ptr, 2)
    tl.store(out_ptr, 1)


@triton.jit
def threads(flag_ptr, out_ptr):
    if tid(0) < 3:
        while ld(flag_ptr, semantic="acquire", scope="sys") != 1:
            st(out_ptr, 2, semantic="relaxed", scope="sys")
    tl.store(out_ptr, 1)


@triton.jit
def in_body(flag_ptr, out_ptr):
    while True:
        tl.store(out_ptr, 2)
        if tl.load(flag_ptr, volatile=True) == 1:
            break
    tl.store(out_ptr, 1)
END
check() { # KERNEL LINE
  if timeout 60 ditron run "k.py:$1" --grid 2 --deadline 1 flag_ptr=zeros:i32[1] out_ptr=zeros:i32[1] > text 2>&1; then
    echo "$1 ended without an error"
    exit 1
  fi
  grep -q "kernel '$1'.*k.py:$2:.*polling loop.*deadline of 1 s" text || { cat text; exit 1; }
  timeout 60 ditron run "k.py:$1" --grid 2 --deadline 20 "flag_ptr=full(1):i32[1]" out_ptr=zeros:i32[1]
}
check program 8
check threads 16
check in_body 23
