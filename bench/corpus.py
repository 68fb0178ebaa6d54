"""Kernels of installed packages on the CPU beside what CPU torch does for the same operation, with as many threads.

    build/deps/corpus/bin/python bench/corpus.py [--build build] [--threads N] [ONLY ...]

A package's host function runs once; its launches are compiled by Ditron and kept. Its result is compared with torch's, then both are timed
in turn for 7 rounds: ours is all launches of the function, one after the other, each waited for; torch's is the one call. Printed: medians, and
the median of the per-round ratios torch / ours (above 1: ours is faster) with the smallest and largest."""
import argparse
import ctypes as c
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/corpus"))
import harness  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import ditron  # noqa: E402

ROUNDS = 7


class Kept(harness.Test):
    """Launches are compiled, run, and kept for being run again."""

    def __init__(self, library, threads):
        super().__init__(library)
        self.kept = []

        class TeamOptions(c.Structure):
            _fields_ = [("size", c.c_size_t), ("local_ranks", c.c_int), ("from_environment", c.c_bool), ("device", c.c_char_p),
                        ("threads_per_rank", c.c_int), ("symmetric_bytes", c.c_size_t), ("trace", c.c_bool)]
        r = self.runner
        o = TeamOptions(size=c.sizeof(TeamOptions), threads_per_rank=threads)
        r.check(r.lib.dt_team_create(r.context, c.byref(o), c.byref(r.team)))
        r.rank = c.c_void_p(r.lib.dt_team_local(r.team, 0))
        r.check(r.lib.dt_stream_create(r.rank, b"bench", c.byref(r.stream)))

    def execute(self, path, fn, grid, values, options, row):
        r = self.runner
        plain = {name: harness.argument(x) for name, x in values.items()}
        image, _, _ = r.compile(path, fn.__name__, plain, [str(harness.PACKAGES), str(harness.SOURCES)],
                                {n: harness.argument(x) for n, x in self.bound.items()}, options.get("num_warps") or 0,
                                options.get("num_stages") or 0)
        kernel, info = c.c_void_p(), ditron.KernelInfo()
        r.check(r.lib.dt_kernel_load(r.rank, image, None, c.byref(kernel)))
        r.check(r.lib.dt_kernel_query(kernel, c.byref(info)))
        names = [r.lib.dt_kernel_arg_name(kernel, c.c_size_t(i)).decode() for i in range(info.nargs)]
        args = (ditron.Value * max(len(names), 1))(*[ditron.value_of(plain[n]) for n in names])
        g = (c.c_uint32 * 3)(*(tuple(grid) + (1, 1))[:3])

        def run():
            r.check(r.lib.dt_launch(kernel, r.stream, g, args, c.c_size_t(len(names))))
            r.check(r.lib.dt_stream_sync(r.stream))
        run()
        self.kept.append((run, values))  # values: the tensors must live on


def seconds(fn):
    start = time.perf_counter()
    fn()
    return time.perf_counter() - start


def race(t, name, ours, theirs, bound):
    t.kept.clear()
    t.same(ours(), theirs(), bound)
    launches = [run for run, _ in t.kept]

    def replay():
        for run in launches:
            run()
    replay(), theirs()
    a, b = [], []
    for _ in range(ROUNDS):
        b.append(seconds(theirs))
        a.append(seconds(replay))
    ratio = sorted(y / x for x, y in zip(a, b))
    print(f"{name:46} {statistics.median(a) * 1e3:9.2f} ms  torch {statistics.median(b) * 1e3:9.2f} ms  "
          f"{statistics.median(ratio):6.2f} ({ratio[0]:.2f}-{ratio[-1]:.2f})", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("only", nargs="*")
    ap.add_argument("--build", default="build")
    ap.add_argument("--threads", type=int, default=torch.get_num_threads())
    o = ap.parse_args()
    torch.set_num_threads(o.threads)
    t = Kept(str(Path(o.build).resolve() / "libditron.so"), o.threads)
    harness.CURRENT = t
    import cases_fla
    import cases_flag_gems as gems
    from liger_kernel.ops import cross_entropy, layer_norm, rms_norm, softmax

    cases = {}
    x, w, b = t.randn(4096, 4096), t.randn(4096), t.randn(4096)
    cases["liger softmax 4096x4096 f32"] = (lambda: softmax.LigerSoftmaxFunction.apply(x), lambda: torch.softmax(x, -1), None)
    cases["flag_gems softmax 4096x4096 f32"] = (lambda: gems.softmax.softmax(x, -1), lambda: torch.softmax(x, -1), None)
    cases["liger layer norm 4096x4096 f32"] = (lambda: layer_norm.LigerLayerNormFunction.apply(x, w, b, 1e-5),
                                               lambda: F.layer_norm(x, (4096,), w, b, 1e-5), None)
    cases["liger rms norm 4096x4096 f32"] = (lambda: rms_norm.LigerRMSNormFunction.apply(x, w, 1e-5, 0.0, "llama", True),
                                             lambda: F.rms_norm(x, (4096,), w, 1e-5), None)
    logits, labels = t.randn(256, 32000), t.randint(0, 32000, (256,))

    def liger_loss():  # its kernel writes the gradient over the logits
        return cross_entropy.cross_entropy_forward(logits.clone().requires_grad_(), labels, None, -100, 0.0, 0.0, "mean", None,
                                                   False)[0]

    def torch_loss():
        leaf = logits.detach().requires_grad_()
        loss = F.cross_entropy(leaf, labels)
        loss.backward()
        return loss.detach()
    cases["liger cross entropy + gradient 256x32000 f32"] = (liger_loss, torch_loss, None)
    m, n = t.randn(1024, 1024), t.randn(1024, 1024)
    cases["flag_gems mm 1024x1024x1024 f32"] = (lambda: gems.mm.mm(m, n), lambda: m @ n, 1e-4)
    cases["fla matmul 1024x1024x1024 f32"] = (lambda: cases_fla.matmul(m, n), lambda: m @ n, 1e-4)
    q, k, v = t.randn(1, 1024, 8, 64), t.randn(1, 1024, 8, 64), t.randn(1, 1024, 8, 64)

    def sdpa():
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        return y.transpose(1, 2)
    cases["fla attention B1 S1024 H8 D64 causal f32"] = (lambda: cases_fla.attn.parallel_attn(q, k, v), sdpa, 1e-4)
    for name, (ours, theirs, bound) in cases.items():
        if all(word in name for word in o.only):
            race(t, name, ours, theirs, bound)


if __name__ == "__main__":
    main()
