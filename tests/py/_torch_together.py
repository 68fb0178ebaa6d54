"""torch, triton and ditron in one process, each with a compiler of its own inside; run by python_torch.py in the corpus's environment."""
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"  # its kernels run on the processor
sys.path.insert(0, f"{os.environ['BUILD']}/python")

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402

import ditron  # noqa: E402

from _ditron import case, finish  # noqa: E402


@triton.jit
def add_triton(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


@ditron.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           out_type: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        kk = k * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * sam + kk[None, :] * sak, mask=(m[:, None] < M) & (kk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + kk[:, None] * sbk + n[None, :] * sbn, mask=(kk[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * scm + n[None, :] * scn, acc.to(out_type), mask=(m[:, None] < M) & (n[None, :] < N))


@ditron.jit
def to_float(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(tl.float32))


@ditron.jit
def twice(x, y, B: tl.constexpr):
    y.store([0, 0], x.load([0, 0]) * 2)


def kernel_of_each():
    """In both orders of the first use."""
    x, y = torch.randn(1000), torch.randn(1000)
    for kernel in (add_triton, ditron.jit(add_triton), add_triton):
        out = torch.zeros(1000)
        kernel[(triton.cdiv(1000, 128),)](x, y, out, 1000, BLOCK=128)
        assert torch.equal(out, x + y)
    compiled = torch.jit.script(torch.nn.Linear(16, 16))
    assert compiled(torch.ones(16)).shape == (16,)


def compiler_in_this_process():
    """Two LLVMs and both work: ours hidden, Triton's in its library."""
    import triton._C.libtriton  # noqa: F401
    from ditron import _settings
    _settings.COMPILE_HERE = True
    out = torch.zeros(33)
    ditron.jit(add_triton)[(1,)](out + 1, out + 2, out, 33, BLOCK=64)
    _settings.COMPILE_HERE = False
    assert (out == 3).all()


def element_types():
    for dtype, bound in ((torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
        a, b = torch.randn(70, 40).to(dtype), torch.randn(50, 40).to(dtype).t()
        c = torch.empty(70, 50, dtype=dtype)
        matmul[(3, 2)](a, b, c, 70, 50, 40, *a.stride(), *b.stride(), *c.stride(), BM=32, BN=32, BK=16, out_type=dtype)
        want = a.double() @ b.double()
        error = float((c.double() - want).norm() / want.norm())
        assert error < bound, (dtype, error)
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.float8_e4m3fn, torch.float8_e5m2, torch.bool,
                  torch.float64):
        x, out = (torch.arange(32) % 2).to(dtype), torch.zeros(32)
        to_float[(1,)](x, out, 32)
        assert torch.equal(out, x.float()), dtype


def views():
    """Parameters, slices at odd addresses, tensors with gradients; a descriptor of Triton's class."""
    x = torch.nn.Parameter(torch.randn(100))
    out = torch.zeros(101)
    ditron.jit(add_triton)[(1,)](x, x.detach()[:], out[1:], 99, BLOCK=128)
    assert torch.equal(out[1:100], 2 * x.detach()[:99]) and out[0] == 0
    a, b = torch.randn(16, 32), torch.zeros(16, 32)
    twice[(1,)](TensorDescriptor.from_tensor(a, [16, 32]), TensorDescriptor.from_tensor(b, [16, 32]), 16)
    assert torch.equal(b, 2 * a)


def triton_stays():
    try:
        ditron.as_triton()
    except RuntimeError as e:
        assert "Triton is installed" in str(e)
    else:
        raise AssertionError("an installed Triton was replaced")


def without_memory():
    try:
        ditron.jit(add_triton)[(1,)](*(torch.empty(3, device="meta"),) * 3, 3, BLOCK=16)
    except ValueError as e:
        assert "'x_ptr'" in str(e)
    else:
        raise AssertionError("a tensor without memory was taken")


def from_a_package():
    """A package's kernels in place of Triton's, through its own host code: unmodified, with helpers and constants of theirs."""
    import liger_kernel.ops.rms_norm as rms
    import liger_kernel.ops.swiglu as swiglu
    torch.cuda.device = lambda index: __import__("contextlib").nullcontext()
    for module in (rms, swiglu):
        for name, kernel in list(vars(module).items()):
            if name.endswith("_kernel") and hasattr(kernel, "fn"):
                setattr(module, name, ditron.jit(kernel))
    x, w = torch.randn(37, 300), torch.randn(300)
    y = rms.rms_norm_forward(x, w, 1e-6, 0.0, "llama", None)[0]
    want = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w
    assert torch.allclose(y, want, atol=1e-5), (y - want).abs().max()
    a, b = torch.randn(11, 500), torch.randn(11, 500)
    got = swiglu.swiglu_forward(a, b)[2]
    assert torch.allclose(got, torch.nn.functional.silu(a) * b, atol=1e-5)


for fn in (kernel_of_each, compiler_in_this_process, element_types, views, triton_stays, without_memory, from_a_package):
    case(fn.__name__, fn)
finish()
