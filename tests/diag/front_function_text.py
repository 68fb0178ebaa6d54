# RUN: ditron compile %s:k --emit tile --sig "x_ptr=*f32, ACTIVATION=relu"
import triton
import triton.language as tl


@triton.jit
def relu(x):
    return tl.maximum(x, 0.0)


@triton.jit
def k(x_ptr, ACTIVATION: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 8))
    if ACTIVATION == "relu":  # WARNING: this compares the function 'relu' with a text, its name: they are never equal  # HINT: pass the text: '"relu"'
        x = ACTIVATION(x)
    if ACTIVATION == "":
        x = -x
    tl.store(x_ptr + tl.arange(0, 8), x + missing)  # ERROR: 'missing' is not defined
