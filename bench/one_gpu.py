"""Ditron's kernels on one GPU beside torch and Triton, in one process.

    python3 bench/one_gpu.py LIBDITRON.SO [--only NAME] [--json FILE]

Each case checks the results against torch in float64 first, then times rounds of every contestant in turn (a new order each round), many
launches back to back between two events over buffers larger than the L2 cache. Printed: medians, and the median of the per-round ratios
peer / ours with the smallest and largest. Needs torch and, for its rows, triton; our kernels are compiled by the library."""
import argparse
import ctypes as c
import json
import os
import random
import statistics
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/corpus"))
import ditron  # noqa: E402

ROUNDS = 7
NAMES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}


class TeamOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("local_ranks", c.c_int), ("from_environment", c.c_bool), ("device", c.c_char_p),
                ("threads_per_rank", c.c_int), ("symmetric_bytes", c.c_size_t), ("trace", c.c_bool)]


class Gpu(ditron.Runner):
    """One context and one rank on cuda:0, launching on torch's stream."""

    def __init__(self, library):
        self.lib = c.CDLL(library, mode=c.RTLD_LOCAL)
        self.lib.dt_error.restype = self.lib.dt_status_name.restype = self.lib.dt_kernel_arg_name.restype = c.c_char_p
        self.lib.dt_team_local.restype = c.c_void_p
        self.context, self.team, self.stream = c.c_void_p(), c.c_void_p(), c.c_void_p()
        o = ditron.ContextOptions(size=c.sizeof(ditron.ContextOptions), deadline_seconds=60)
        self.check(self.lib.dt_context_create(c.byref(o), c.byref(self.context)))
        t = TeamOptions(size=c.sizeof(TeamOptions), local_ranks=1, symmetric_bytes=1 << 20, device=b"cuda:0")
        self.check(self.lib.dt_team_create(self.context, c.byref(t), c.byref(self.team)))
        self.rank = c.c_void_p(self.lib.dt_team_local(self.team, 0))
        native = c.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.check(self.lib.dt_stream_wrap(self.rank, native, b"torch", c.byref(self.stream)))

    def kernel(self, path, name, values, warps, stages=2):
        """A function that launches the kernel for other values of the same types."""
        args = ditron.named({n: as_value(v) for n, v in values.items()})
        o = ditron.CompileOptions(size=c.sizeof(ditron.CompileOptions), target=b"sm_90a", num_warps=warps, num_stages=stages)
        image, k, info = c.c_void_p(), c.c_void_p(), ditron.KernelInfo()
        self.check(self.lib.dt_compile_file(self.context, os.fsencode(path), name.encode(), args, c.c_size_t(len(values)),
                                            c.byref(o), c.byref(image)))
        self.check(self.lib.dt_kernel_load(self.rank, image, None, c.byref(k)))
        self.check(self.lib.dt_kernel_query(k, c.byref(info)))
        names = [self.lib.dt_kernel_arg_name(k, c.c_size_t(i)).decode() for i in range(info.nargs)]

        def bind(grid, values):
            array = (ditron.Value * len(names))(*[ditron.value_of(as_value(values[n])) for n in names])
            g = (c.c_uint32 * 3)(*(tuple(grid) + (1, 1))[:3])
            return lambda: self.check(self.lib.dt_launch(k, self.stream, g, array, c.c_size_t(len(names))))
        return bind


def as_value(v):
    return ditron.Pointer(NAMES[v.dtype], v.data_ptr()) if isinstance(v, torch.Tensor) else v


def time_ms(calls, times):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for i in range(times):
        calls[i % len(calls)]()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / times


def race(name, contestants, work, unit, out, times=None):
    """contestants: name -> list of calls over different buffers; ours first."""
    for calls in contestants.values():
        time_ms(calls, 8)
    if times is None:
        times = max(8, int(20 / time_ms(next(iter(contestants.values())), 8)))
    rounds = {n: [] for n in contestants}
    for _ in range(ROUNDS):
        order = list(contestants)
        random.shuffle(order)
        for n in order:
            rounds[n].append(time_ms(contestants[n], times))
    ours = next(iter(contestants))
    row = {"name": name, "unit": unit}
    for n, ms in rounds.items():
        ratio = sorted(p / o for p, o in zip(ms, rounds[ours]))
        row[n] = {"ms": statistics.median(ms), "rate": work / statistics.median(ms), "ratio": statistics.median(ratio),
                  "min": ratio[0], "max": ratio[-1]}
    print(f"{name:34}" + "  ".join(
        f"{n} {v['rate']:.0f}" + ("" if n == ours else f" ({v['ratio']:.2f}, {v['min']:.2f}-{v['max']:.2f})")
        for n, v in row.items() if isinstance(v, dict)) + f"  {unit}", flush=True)
    out.append(row)


def right(name, got, want, bound):
    err = ((got.double() - want).norm() / want.norm()).item()
    if not err <= bound:
        raise SystemExit(f"{name}: relative error {err:.3g}, allowed {bound:.3g}; nothing was timed")


def rows(gpu, out, kind, m=8192, n=8192, dtype=torch.bfloat16, copies=4):
    xs = [torch.randn(m, n, device="cuda", dtype=dtype) for _ in range(copies)]
    ys = [torch.empty_like(x) for x in xs]
    w, b = torch.randn(n, device="cuda", dtype=dtype), torch.randn(n, device="cuda", dtype=dtype)
    d = xs[0].double()
    if kind == "softmax":
        values = dict(x_row_stride=n, out_row_stride=n, n_rows=m, n_cols=n, BLOCK_SIZE=n)
        file, name, want = "softmax.py", "softmax_kernel", torch.softmax(d, -1)
        peer = lambda i: lambda: torch.softmax(xs[i], -1)  # noqa: E731
    else:
        values = dict(w_ptr=w, row_stride=n, n_rows=m, n_cols=n, eps=1e-5, BLOCK_SIZE=n)
        file, name = "norm.py", f"{kind}_kernel"
        if kind == "layer_norm":
            values["b_ptr"] = b
            want = torch.nn.functional.layer_norm(d, (n,), w.double(), b.double(), 1e-5)
            peer = lambda i: lambda: torch.nn.functional.layer_norm(xs[i], (n,), w, b, 1e-5)  # noqa: E731
        else:
            want = torch.nn.functional.rms_norm(d, (n,), w.double(), 1e-5)
            peer = lambda i: lambda: torch.nn.functional.rms_norm(xs[i], (n,), w, 1e-5)  # noqa: E731
    best = None
    for warps in (4, 8, 16):
        bind = gpu.kernel(ROOT / "kernels" / file, name, dict(values, x_ptr=xs[0], out_ptr=ys[0]), warps)
        calls = [bind((m,), dict(values, x_ptr=x, out_ptr=y)) for x, y in zip(xs, ys)]
        ys[0].fill_(float("nan"))
        calls[0]()
        torch.cuda.synchronize()
        right(kind, ys[0], want, 1e-2)
        ms = time_ms(calls, 20)
        if best is None or ms < best[0]:
            best = (ms, warps, calls)
    race(f"{kind} {m}x{n} {NAMES[dtype]} ({best[1]} warps)",
         {"ours": best[2], "torch": [peer(i) for i in range(copies)],
          "copy": [lambda i=i: ys[i].copy_(xs[i]) for i in range(copies)]}, 2 * m * n * xs[0].element_size() / 1e6, "GB/s", out)


def gemm(gpu, out, m, n, k, dtype=torch.bfloat16):
    a, b = torch.randn(m, k, device="cuda", dtype=dtype), torch.randn(k, n, device="cuda", dtype=dtype)
    y = torch.empty(m, n, device="cuda", dtype=dtype)
    want = a.double() @ b.double()
    best = None
    for bm, bn, bk, warps, stages in ((128, 128, 32, 8, 4), (128, 128, 64, 8, 3), (128, 128, 64, 4, 3), (128, 256, 64, 8, 3), (256, 128, 32, 8, 4), (128, 128, 32, 4, 4), (128, 256, 32, 8, 4), (64, 128, 32, 4, 4)):
        values = dict(a_ptr=a, b_ptr=b, c_ptr=y, M=m, N=n, K=k, stride_am=k, stride_ak=1, stride_bk=n, stride_bn=1,
                      stride_cm=n, stride_cn=1, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk, GROUP_M=8)
        call = gpu.kernel(ROOT / "kernels/matmul.py", "matmul_kernel", values, warps, stages)((-(-m // bm) * -(-n // bn),), values)
        y.fill_(float("nan"))
        call()
        torch.cuda.synchronize()
        right("gemm", y, want, 1e-2)
        ms = time_ms([call], 5)
        if best is None or ms < best[0]:
            best = (ms, (bm, bn, bk, warps, stages), call)
    race(f"gemm {m}x{n}x{k} {NAMES[dtype]} {best[1]}", {"ours": [best[2]], "cuBLAS": [lambda: torch.matmul(a, b, out=y)]},
         2 * m * n * k / 1e9, "TFLOP/s", out)


def attention(gpu, out, b, h, s, d, causal, dtype=torch.bfloat16):
    q, k, v = (torch.randn(b, h, s, d, device="cuda", dtype=dtype) for _ in range(3))
    y, lse = torch.empty_like(q), torch.empty(b, h, s, device="cuda")
    peer = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)  # noqa: E731
    want = torch.nn.functional.scaled_dot_product_attention(q[:1, :2].double(), k[:1, :2].double(), v[:1, :2].double(),
                                                            is_causal=causal)
    best = None
    for bm, bn, warps, stages in ((64, 64, 4, 2), (64, 64, 4, 3), (64, 128, 4, 2), (128, 64, 8, 2), (128, 64, 8, 3), (128, 32, 8, 3)):
        values = dict(q_ptr=q, k_ptr=k, v_ptr=v, out_ptr=y, lse_ptr=lse, scale=d ** -0.5, seq_q=s, seq_k=s, heads=h, kv_heads=h,
                      HEAD_DIM=d, BLOCK_M=bm, BLOCK_N=bn, CAUSAL=causal)
        call = gpu.kernel(ROOT / "kernels/attention.py", "attention_kernel", values, warps, stages)((-(-s // bm), b * h), values)
        y.fill_(float("nan"))
        call()
        torch.cuda.synchronize()
        right("attention", y[:1, :2], want, 2e-2)
        ms = time_ms([call], 3)
        if best is None or ms < best[0]:
            best = (ms, (bm, bn, warps, stages), call)
    flops = 4 * b * h * s * s * d * (0.5 if causal else 1)
    race(f"attention B{b} H{h} S{s} D{d} {'causal' if causal else 'full'} {best[1]}", {"ours": [best[2]], "torch": [peer]},
         flops / 1e9, "TFLOP/s", out)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("library")
    ap.add_argument("--only", default="")
    ap.add_argument("--json")
    o = ap.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    gpu, out = Gpu(o.library), []
    cases = {
        "rms_norm": lambda: rows(gpu, out, "rms_norm"), "layer_norm": lambda: rows(gpu, out, "layer_norm"),
        "softmax": lambda: rows(gpu, out, "softmax"),
        "gemm 8192": lambda: gemm(gpu, out, 8192, 8192, 8192), "gemm 4096": lambda: gemm(gpu, out, 4096, 4096, 4096),
        "gemm 2048": lambda: gemm(gpu, out, 2048, 2048, 2048),
        "attention 128": lambda: attention(gpu, out, 4, 32, 4096, 128, True),
        "attention 64": lambda: attention(gpu, out, 16, 16, 2048, 64, True),
    }
    for name, case in cases.items():
        if o.only in name:
            case()
    if o.json:
        Path(o.json).write_text("".join(json.dumps(row) + "\n" for row in out))


if __name__ == "__main__":
    main()
