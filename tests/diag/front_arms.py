# Names that a module binds under conditions that cannot be known: the arm that compiles everywhere, and a warning.
# RUN: ditron compile %s:arms --emit tile --sig "x=*f32"
import triton
import triton.language as tl
from triton.language import core
from platforms import current, HAS_FAST

if current.is_rocm():  # WARNING: not known here whether this holds: 'rounded' is that of line 24, not that of line 18, which uses extern_elementwise

    @core.extern  # (never looked at)
    def extern_round(a, _builder=None):
        return core.extern_elementwise("", "", [a], {}, is_pure=True, _builder=_builder)

    def by_way(a):
        return extern_round(a)

    @triton.jit
    def rounded(a):
        return by_way(a).to(tl.int8)

else:

    @triton.jit
    def rounded(a):
        return tl.floor(a + 0.5).to(tl.int8)


if HAS_FAST:  # WARNING: 'scale' is that of line 31, not that of line 36  # HINT: bind 'HAS_FAST'

    @triton.jit
    def scale(a):
        return a * 2.0
elif current.is_cuda():  # WARNING: 'scale' is that of line 36, not that of line 41

    @triton.jit
    def scale(a):
        return a * 3.0
else:

    @triton.jit
    def scale(a):
        return tl.inline_asm_elementwise("mov $0, $1;", "=r,r", [a], tl.float32, True, 1)


if current.is_cuda():  # WARNING: 'twice' is that of line 53, not that of line 48, which uses inline_asm_elementwise

    @triton.jit
    def twice(a):
        return tl.inline_asm_elementwise("mov $0, $1;", "=r,r", [a], tl.float32, True, 1)
elif current.is_rocm():  # WARNING: 'twice' is that of line 53, not that of line 58

    @triton.jit
    def twice(a):
        return a * 2.0
else:

    @triton.jit
    def twice(a):
        return tl.not_there(a)


BLOCK: tl.constexpr = 16
if current.is_wide():  # WARNING: 'BLOCK' is that of line 64, not that of line 62
    BLOCK = 32

if 1 + 1 == 2:  # known
    FACTOR = 2.0
else:
    FACTOR = 3.0

if HAS_FAST:  # one arm only has a meaning
    OFFSET = 1.0
else:
    OFFSET = None

if HAS_FAST:  # both mean the same
    SHIFT = 4.0
else:
    SHIFT = 4.0

if current.is_cuda():  # nobody asks
    UNUSED = 1
else:
    UNUSED = 2

if HAS_FAST:  # the library, not what stands in for it
    tl2 = Missing = current.fake()
else:
    import triton.language as tl2


@triton.jit
def arms(x):
    at = x + tl.arange(0, BLOCK)
    v = scale(twice(tl.load(at)) * FACTOR + OFFSET + SHIFT)
    tl.store(at, tl2.exp(rounded(v).to(tl.float32)))
    tl.store(at, nothing)  # ERROR: is not defined
