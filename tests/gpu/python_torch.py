"""Kernels through the Python package on a GPU beside torch: results, streams, graphs, tuning, and what a launch costs."""
import sys
import time

import torch

import ditron
import triton.language as tl

GPU = torch.device("cuda", int(sys.argv[1]) if len(sys.argv) > 1 else 0)
torch.cuda.set_device(GPU)


@ditron.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


@ditron.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        kk = k + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * sam + kk[None, :] * sak, mask=(m[:, None] < M) & (kk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + kk[:, None] * sbk + n[None, :] * sbn, mask=(kk[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * scm + n[None, :] * scn, acc.to(tl.bfloat16), mask=(m[:, None] < M) & (n[None, :] < N))


@ditron.jit
def late(x_ptr):
    tl.device_assert(tl.load(x_ptr) < 5, "too many")


def grid(meta):
    return (ditron.cdiv(meta["n"], meta["BLOCK"]),)


def results():
    x, y = torch.randn(2, 100003, device=GPU)
    out = torch.empty_like(x)
    add[grid](x, y, out, x.numel(), BLOCK=1024)
    assert torch.equal(out, x + y)
    a, b = torch.randn(300, 200, device=GPU).bfloat16(), torch.randn(150, 200, device=GPU).bfloat16().t()
    c = torch.empty(300, 150, device=GPU, dtype=torch.bfloat16)
    matmul[(5, 3)](a, b, c, 300, 150, 200, *a.stride(), *b.stride(), *c.stride(), BM=64, BN=64, BK=32)
    want = a.double() @ b.double()
    assert float((c.double() - want).norm() / want.norm()) < 1e-2


def on_streams():
    """In the order of the stream that torch is in, though that is busy."""
    x = torch.ones(1 << 24, device=GPU)
    out = torch.zeros_like(x)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(20):
            x.mul_(1.5)
        add[grid](x, x, out, x.numel(), BLOCK=1024)
        late_sum = out.sum()
    stream.synchronize()
    assert torch.allclose(out, 2 * x) and float(late_sum) > 0


def in_graphs():
    x, out = torch.ones(4096, device=GPU), torch.zeros(4096, device=GPU)
    add[grid](x, x, out, 4096, BLOCK=256)  # loaded before
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add[grid](x, out, out, 4096, BLOCK=256)
    out.zero_()
    for _ in range(5):
        graph.replay()
    torch.cuda.synchronize()
    assert (out == 5).all()


def tuned():
    kernel = ditron.autotune([ditron.Config({"BLOCK": b}, num_warps=w) for b, w in ((32, 1), (1024, 4), (4096, 8))], ["n"],
                             cache_results=False)(add)
    x = torch.ones(1 << 24, device=GPU)
    out = torch.empty_like(x)
    kernel[grid](x, x, out, x.numel())
    assert (out == 2).all() and len(kernel.configs_timings) == 3, kernel.configs_timings
    print(f"# {kernel.best_config}: {min(kernel.configs_timings.values()):.4f} ms")


def beside_the_processor():
    for device in ("cpu", GPU, "cpu"):
        x = torch.ones(1000, device=device)
        out = torch.zeros_like(x)
        add[grid](x, x, out, 1000, BLOCK=128)
        assert (out == 2).all()
    try:
        add[grid](x, x.to(GPU), x, 1000, BLOCK=128)
    except ValueError as e:
        assert "different devices" in str(e)
    else:
        raise AssertionError("arrays of two devices were taken")


def failures():
    try:
        late[(1,)](torch.full((1,), 9, device=GPU, dtype=torch.int32), debug=True)
        ditron.synchronize(1 + GPU.index)
    except ditron.DeviceAssertionError as e:
        assert "too many" in str(e), e
    else:
        raise AssertionError("nothing was raised")
    results()  # and on it goes


def cost():
    """Microseconds a launch takes the host, beside torch's own out-variant of the same operation."""
    x = torch.ones(1024, device=GPU)
    out = torch.empty_like(x)
    for name, call in (("ditron, 5 arguments", lambda: add[(1,)](x, x, out, 1024, BLOCK=1024)),
                       ("torch.add(out=)", lambda: torch.add(x, x, out=out))):
        best = float("inf")
        for _ in range(20):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(300):
                call()
            best = min(best, (time.perf_counter() - start) / 300)
        print(f"# {name}: {best * 1e6:.2f} us")


for fn in (results, on_streams, in_graphs, tuned, beside_the_processor, cost, failures):
    fn()
    print(f"ok {fn.__name__}")
