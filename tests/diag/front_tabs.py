# RUN: ditron compile %s:k --emit tile --sig "x=*f32, n=i32"
import triton
import triton.language as tl


@triton.jit
def k(x, n):
    if n > 3:
        tl.store(x, 1.0)
	tl.store(x, 2.0)  # ERROR: syntax error: whether this line is indented as the ones above depends on how wide a tab is  # HINT: indent with blanks alone
