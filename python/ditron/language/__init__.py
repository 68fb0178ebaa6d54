"""Names of kernels, for `import ditron.language as tl`. Written by scripts/gen-docs from builtins.def."""
from ._base import const, constexpr, dtype, outside, tensor  # noqa: F401

void = dtype("void")
int1 = dtype("int1")
int8 = dtype("int8")
int16 = dtype("int16")
int32 = dtype("int32")
int64 = dtype("int64")
uint8 = dtype("uint8")
uint16 = dtype("uint16")
uint32 = dtype("uint32")
uint64 = dtype("uint64")
float8e4nv = dtype("float8e4nv")
float8e5 = dtype("float8e5")
float16 = dtype("float16")
bfloat16 = dtype("bfloat16")
float32 = dtype("float32")
float64 = dtype("float64")
float8e4b8 = dtype("float8e4b8")
float8e4b15 = dtype("float8e4b15")
float8e5b16 = dtype("float8e5b16")


def constexpr_function(fn):
    """marks a function that runs while compiling"""
    return fn


def cdiv(x, div):
    """quotient rounded up"""
    return (x + div - 1) // div


PropagateNan = None  # NONE and ALL, for maximum and minimum


def TensorDescriptor(value=None):
    outside("TensorDescriptor")


def _experimental_make_tensor_descriptor(base, shape, strides, block_shape):
    """the older name of make_tensor_descriptor"""
    outside("_experimental_make_tensor_descriptor")


def _log2(i):
    """logarithm of a constant power of two"""
    outside("_log2")


def abs(x):
    """absolute value"""
    outside("abs")


def acquire(flag, at_least, scope=None):
    """until a flag is at least a value; what was released is seen"""
    outside("acquire")


def add(x, y, sanitize_overflow=None):
    """the operator as a function"""
    outside("add")


def advance(base, offsets):
    """a block pointer moved"""
    outside("advance")


def allocate_smem(element_ty, shape, vec=None, per_phase=None, max_phase=None):
    """memory of the program for its threads; undefined until written"""
    outside("allocate_smem")


def arange(start, end):
    """start, start + 1, ... end - 1 as int32; the length is a power of two"""
    outside("arange")


def argmax(input, axis, tie_break_left=None, keep_dims=None):
    """where the maximum is"""
    outside("argmax")


def argmin(input, axis, tie_break_left=None, keep_dims=None):
    """where the minimum is"""
    outside("argmin")


def associative_scan(input, axis, combine_fn, reverse=None):
    """running combination along an axis"""
    outside("associative_scan")


def assume(cond):
    """promises that a scalar condition holds"""
    outside("assume")


def atomic_add(pointer, val, mask=None, sem=None, scope=None):
    """atomic add; the old value"""
    outside("atomic_add")


def atomic_and(pointer, val, mask=None, sem=None, scope=None):
    """atomic and; the old value"""
    outside("atomic_and")


def atomic_cas(pointer, cmp, val, sem=None, scope=None):
    """atomic compare and swap; the old value"""
    outside("atomic_cas")


def atomic_max(pointer, val, mask=None, sem=None, scope=None):
    """atomic max; the old value"""
    outside("atomic_max")


def atomic_min(pointer, val, mask=None, sem=None, scope=None):
    """atomic min; the old value"""
    outside("atomic_min")


def atomic_or(pointer, val, mask=None, sem=None, scope=None):
    """atomic or; the old value"""
    outside("atomic_or")


def atomic_xchg(pointer, val, mask=None, sem=None, scope=None):
    """atomic xchg; the old value"""
    outside("atomic_xchg")


def atomic_xor(pointer, val, mask=None, sem=None, scope=None):
    """atomic xor; the old value"""
    outside("atomic_xor")


def block_type(element_ty, shape):
    """the type of tiles of a type and shape"""
    outside("block_type")


def broadcast(input, other):
    """both in their common shape"""
    outside("broadcast")


def broadcast_to(input, shape=None, *more):
    """axes of size 1 repeated"""
    outside("broadcast_to")


def cast(input, dtype, fp_downcast_rounding=None, bitcast=None):
    """a value as another type"""
    outside("cast")


def cat(input, other, can_reorder=None, dim=None):
    """one after the other"""
    outside("cat")


def ceil(x):
    """smallest integer not below"""
    outside("ceil")


def clamp(x, min, max, propagate_nan=None):
    """min(max(x, min), max)"""
    outside("clamp")


def consume_token(value, token):
    """the value, to be used after the wait"""
    outside("consume_token")


def cos(x):
    """cosine"""
    outside("cos")


def cumprod(input, axis=None, reverse=None):
    """running product"""
    outside("cumprod")


def cumsum(input, axis=None, reverse=None, dtype=None):
    """running sum"""
    outside("cumsum")


def debug_barrier():
    """all threads of the program meet"""
    outside("debug_barrier")


def device_assert(cond, msg=None, mask=None):
    """ends the launch with an error where a condition fails"""
    outside("device_assert")


def device_print(prefix, *args, hex=None):
    """prints values of every program"""
    outside("device_print")


def div_rn(x, y):
    """float division, correctly rounded"""
    outside("div_rn")


def dot(input, other, acc=None, input_precision=None, allow_tf32=None, max_num_imprecise_acc=None, out_dtype=None):
    """matrix product"""
    outside("dot")


def dot_scaled(lhs, lhs_scale, lhs_format, rhs, rhs_scale, rhs_format, acc=None, fast_math=None, lhs_k_pack=None, rhs_k_pack=None, out_dtype=None):
    """matrix product of operands scaled in blocks of 32"""
    outside("dot_scaled")


def erf(x):
    """error function"""
    outside("erf")


def exp(x):
    """e to the x"""
    outside("exp")


def exp2(x):
    """2 to the x"""
    outside("exp2")


def expand_dims(input, axis):
    """new axes of size 1"""
    outside("expand_dims")


def extern_call(lib_name, lib_path, args, table, is_pure=None):
    """a known device function by its symbol"""
    outside("extern_call")


def fdiv(x, y, ieee_rounding=None):
    """float division"""
    outside("fdiv")


def flip(x, dim=None):
    """an axis in reverse"""
    outside("flip")


def floor(x):
    """largest integer not above"""
    outside("floor")


def fma(x, y, z):
    """x * y + z, rounded once"""
    outside("fma")


def full(shape, value, dtype=None):
    """a tile with one value everywhere"""
    outside("full")


def gather(src, index, axis):
    """elements by index along an axis"""
    outside("gather")


def get_int_dtype(bitwidth, signed):
    """the integer type of a width"""
    outside("get_int_dtype")


def histogram(input, num_bins, mask=None):
    """counts of 0 .. num_bins - 1"""
    outside("histogram")


def inline_asm_elementwise(asm, constraints, args, dtype, is_pure, pack):
    """the target's assembly on packs of elements"""
    outside("inline_asm_elementwise")


def interleave(a, b):
    """elements in turn along the last axis"""
    outside("interleave")


def join(a, b):
    """both along a new last axis"""
    outside("join")


def ld_vector(ptr, vec_size, scope=None, semantic=None):
    """neighbouring words of memory as a vector of this thread"""
    outside("ld_vector")


def load(pointer, mask=None, other=None, boundary_check=None, padding_option=None, cache_modifier=None, eviction_policy=None, volatile=None):
    """reads through pointers, a block pointer or a descriptor"""
    outside("load")


def load_tensor_descriptor(desc, offsets):
    """the block at these offsets"""
    outside("load_tensor_descriptor")


def log(x):
    """natural logarithm"""
    outside("log")


def log2(x):
    """logarithm to base 2"""
    outside("log2")


def make_block_ptr(base, shape, strides, offsets, block_shape, order):
    """a pointer to a block of a tensor"""
    outside("make_block_ptr")


def make_tensor_descriptor(base, shape, strides, block_shape, padding_option=None):
    """a tensor in memory, to be read and written in blocks"""
    outside("make_tensor_descriptor")


def make_vector(*items):
    """a vector of this thread from its items"""
    outside("make_vector")


def max(input, axis=None, return_indices=None, return_indices_tie_break_left=None, keep_dims=None):
    """maximum along an axis, or of all"""
    outside("max")


def max_constancy(input, values):
    """the value, promised to repeat in runs of this length"""
    outside("max_constancy")


def max_contiguous(input, values):
    """the value, promised to count up in runs of this length"""
    outside("max_contiguous")


def maximum(x, y, propagate_nan=None):
    """the larger one"""
    outside("maximum")


def min(input, axis=None, return_indices=None, return_indices_tie_break_left=None, keep_dims=None):
    """minimum along an axis, or of all"""
    outside("min")


def minimum(x, y, propagate_nan=None):
    """the smaller one"""
    outside("minimum")


def mul(x, y, sanitize_overflow=None):
    """the operator as a function"""
    outside("mul")


def multiple_of(input, values):
    """the value, promised to be a multiple of this"""
    outside("multiple_of")


def notify(ptr, rank, signal=None, sig_op=None, comm_scope=None):
    """sets or adds to a flag of a peer"""
    outside("notify")


def num_programs(axis):
    """programs along a grid axis"""
    outside("num_programs")


def num_ranks(axis=None):
    """devices in the world"""
    outside("num_ranks")


def pair_uniform_to_normal(u1, u2):
    """two normal values from two uniform ones"""
    outside("pair_uniform_to_normal")


def permute(input, dims=None, *more):
    """axes in another order"""
    outside("permute")


def philox(seed, c0, c1, c2, c3, n_rounds=None):
    """four random words from a seed and four counters"""
    outside("philox")


def pointer_type(element_ty, address_space=None, const=None):
    """the type of pointers to a type"""
    outside("pointer_type")


def program_id(axis):
    """index of this program along a grid axis"""
    outside("program_id")


def rand(seed, offset, n_rounds=None):
    """random numbers by seed and offset"""
    outside("rand")


def rand4x(seed, offset, n_rounds=None):
    """random numbers by seed and offset"""
    outside("rand4x")


def randint(seed, offset, n_rounds=None):
    """random numbers by seed and offset"""
    outside("randint")


def randint4x(seed, offset, n_rounds=None):
    """random numbers by seed and offset"""
    outside("randint4x")


def randn(seed, offset, n_rounds=None):
    """random numbers by seed and offset"""
    outside("randn")


def randn4x(seed, offset, n_rounds=None):
    """random numbers by seed and offset"""
    outside("randn4x")


def range(arg1, arg2=None, step=None, num_stages=None, loop_unroll_factor=None, disallow_acc_multi_buffer=None, flatten=None, warp_specialize=None, disable_licm=None):
    """a range with hints for its loop"""
    outside("range")


def rank(axis=None):
    """this device's index in the world"""
    outside("rank")


def ravel(x, can_reorder=None):
    """one axis"""
    outside("ravel")


def reduce(input, axis, combine_fn, keep_dims=None):
    """combines along an axis with a function"""
    outside("reduce")


def reduce_or(input, axis, keep_dims=None):
    """bitwise or along an axis"""
    outside("reduce_or")


def release(flag, value, rank=None, sig_op=None, scope=None):
    """all that this program did before is seen by who sees the flag"""
    outside("release")


def reshape(input, shape=None, *more, can_reorder=None):
    """the same elements in another shape"""
    outside("reshape")


def rsqrt(x):
    """1 / square root"""
    outside("rsqrt")


def sigmoid(x):
    """1 / (1 + exp(-x))"""
    outside("sigmoid")


def simt_exec_region():
    """with: per-thread code inside a tile kernel"""
    outside("simt_exec_region")


def sin(x):
    """sine"""
    outside("sin")


def smem_dealloc(smem):
    """the buffer is used no more"""
    outside("smem_dealloc")


def smem_get_ptr(smem, indices=None):
    """a pointer into a shared-memory buffer, for ld, st, tl.load and tl.store of scalars"""
    outside("smem_get_ptr")


def smem_index(smem, index):
    """the part of a shared-memory buffer at an index along its first axis"""
    outside("smem_index")


def smem_load(smem, indices):
    """an element of a shared-memory buffer"""
    outside("smem_load")


def smem_store(smem, value, indices):
    """writes an element of a shared-memory buffer"""
    outside("smem_store")


def softmax(x, dim=None, keep_dims=None, ieee_rounding=None):
    """exp(x - max) / sum along an axis"""
    outside("softmax")


def sort(x, dim=None, descending=None):
    """sorts along the last axis"""
    outside("sort")


def split(a):
    """the halves of a last axis of size 2"""
    outside("split")


def sqrt(x):
    """square root"""
    outside("sqrt")


def sqrt_rn(x):
    """square root, correctly rounded"""
    outside("sqrt_rn")


def st_vector(ptr, vec, scope=None, semantic=None):
    """a vector of this thread to neighbouring words of memory"""
    outside("st_vector")


def static_assert(cond, msg=None):
    """an error while compiling unless a constant condition holds"""
    outside("static_assert")


def static_print(*values, sep=None, end=None):
    """a remark while compiling"""
    outside("static_print")


def static_range(arg1, arg2=None, step=None):
    """a range whose loop is unrolled while compiling"""
    outside("static_range")


def store(pointer, value, mask=None, boundary_check=None, cache_modifier=None, eviction_policy=None):
    """writes through pointers or a block pointer"""
    outside("store")


def store_tensor_descriptor(desc, offsets, value):
    """writes the block at these offsets"""
    outside("store_tensor_descriptor")


def sub(x, y, sanitize_overflow=None):
    """the operator as a function"""
    outside("sub")


def sum(input, axis=None, keep_dims=None, dtype=None):
    """sum along an axis, or of all"""
    outside("sum")


def swizzle2d(i, j, size_i, size_j, size_g):
    """row-major indices to column-major groups of rows"""
    outside("swizzle2d")


def symm_at(ptr, rank):
    """a peer's address of a symmetric pointer"""
    outside("symm_at")


def tensor_descriptor(value=None):
    """what descriptors are, for isinstance"""
    outside("tensor_descriptor")


def tensor_descriptor_base(value=None):
    """what descriptors are, for isinstance"""
    outside("tensor_descriptor_base")


def to_tensor(input):
    """a constant as a run-time scalar"""
    outside("to_tensor")


def topk(x, k, dim=None):
    """the k largest along the last axis, in order"""
    outside("topk")


def trans(input, dims=None, *more):
    """axes in another order; the last two swapped by default"""
    outside("trans")


def tuple(args=None):
    """a tuple"""
    outside("tuple")


def uint_to_uniform_float(x):
    """[0, 1) from random words"""
    outside("uint_to_uniform_float")


def umulhi(x, y):
    """upper half of an unsigned product"""
    outside("umulhi")


def vector(*items):
    """a vector of this thread from its items"""
    outside("vector")


def view(input, shape=None, *more):
    """the same elements in another shape"""
    outside("view")


def wait(barrierPtrs, numBarriers=None, scope=None, semantic=None, waitValue=None):
    """until n consecutive flags equal a value; a token"""
    outside("wait")


def where(condition, x, y):
    """x where the condition holds, else y"""
    outside("where")


def xor_sum(input, axis=None, keep_dims=None):
    """exclusive or along an axis"""
    outside("xor_sum")


def zeros(shape, dtype):
    """a tile of zeros"""
    outside("zeros")


def zeros_like(input):
    """zeros of the type and shape of another value"""
    outside("zeros_like")


def zeros_vector(vec_size, dtype):
    """a vector of zeros"""
    outside("zeros_vector")


import sys as _sys  # noqa: E402

core = math = standard = _sys.modules[__name__]
_sys.modules.update({__name__ + n: core for n in (".core", ".math", ".standard")})
from . import extra, language_extra, libdevice, libshmem_device, target_info  # noqa: E402, F401
