#!/usr/bin/env python3
"""Real kernels of public packages, unmodified, against NumPy: the part of the corpus that needs no torch.

    sample.py [--build DIR] [--packages DIR] [FILTER ...]

scripts/setup unpacks the packages into build/deps/kernels. Prints a row a kernel and `right N of M kernels`; exit status
77, with the reason, where the packages are not there.
"""
import argparse
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
from ditron import Pointer, Refused, Runner  # noqa: E402

TYPES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "uint16": "bf16"}
KERNELS = []
random = np.random.default_rng(20)


def f32(*shape):
    return random.standard_normal(shape).astype(np.float32)


def to_bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(x):
    return (x.astype(np.uint32) << 16).view(np.float32)


def cdiv(a, b):
    return -(-a // b)


def kernel(file, name):
    """The function gives (grid, arguments by name, [(result, expected, bound)]); arrays are passed by address."""
    def add(make):
        KERNELS.append((file, name, make))
        return make
    return add


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# ---- rows ---------------------------------------------------------------------------------------------------------
@kernel("liger_kernel/ops/softmax.py", "_softmax_single_block_forward_kernel")
def _():
    x, y = f32(61, 781), np.zeros((61, 781), np.float32)
    return (61,), dict(Y_ptr=y, Y_row_stride=781, X_ptr=x, X_row_stride=781, n_cols=781, BLOCK_SIZE=1024), [
        (y, lambda: softmax(x.astype(np.float64)), 1e-6)]


@kernel("liger_kernel/ops/rms_norm.py", "_rms_norm_forward_kernel")
def _():
    x, w, y, r = f32(67, 513), f32(513), np.zeros((67, 513), np.float32), np.zeros(67, np.float32)
    rstd = lambda: 1 / np.sqrt((x.astype(np.float64) ** 2).mean(-1) + 1e-6)  # noqa: E731
    return (67,), dict(Y_ptr=y, Y_row_stride=513, X_ptr=x, X_row_stride=513, W_ptr=w, W_row_stride=1, RSTD_ptr=r, RSTD_row_stride=1,
                       n_cols=513, eps=1e-6, offset=0.0, casting_mode=0, elementwise_affine=True, BLOCK_SIZE=1024), [
        (r, rstd, 1e-6), (y, lambda: x * rstd()[:, None] * w, 1e-6)]


@kernel("liger_kernel/ops/layer_norm.py", "_layer_norm_forward_kernel")
def _():
    x, w, b, y, m, r = f32(5, 777) + 3, f32(777), f32(777), np.zeros((5, 777), np.float32), np.zeros(5, np.float32), np.zeros(5, np.float32)
    def norm():
        z = x.astype(np.float64)
        return (z - z.mean(-1, keepdims=True)) / np.sqrt(z.var(-1, keepdims=True) + 1e-5) * w + b
    return (5,), dict(Y_ptr=y, Y_row_stride=777, X_ptr=x, X_row_stride=777, W_ptr=w, W_row_stride=1, B_ptr=b, B_row_stride=1, Mean_ptr=m,
                      Mean_row_stride=1, RSTD_ptr=r, RSTD_row_stride=1, n_cols=777, eps=1e-5, BLOCK_SIZE=1024), [
        (m, lambda: x.astype(np.float64).mean(-1), 1e-6), (y, norm, 1e-5)]


@kernel("liger_kernel/ops/swiglu.py", "_swiglu_forward_kernel")
def _():
    a, b, c = to_bf16(f32(17, 1000)), to_bf16(f32(17, 1000)), np.zeros((17, 1000), np.uint16)
    wide = lambda: (from_bf16(a).astype(np.float64), from_bf16(b).astype(np.float64))  # noqa: E731
    return (17,), dict(a_ptr=a, b_ptr=b, c_ptr=c, stride=1000, gate_multiplier=1.0, n_cols=1000, BLOCK_SIZE=1024), [
        (c, lambda: wide()[0] / (1 + np.exp(-wide()[0])) * wide()[1], 6e-3)]


@kernel("liger_kernel/ops/cross_entropy.py", "liger_cross_entropy_kernel")
def _():
    x, n = f32(53, 3001), 3001
    y, loss, before = random.integers(0, n, 53), np.zeros(53, np.float32), x.astype(np.float64)
    y[7] = -100  # ignored
    live = (y >= 0)
    def gradient():
        g = softmax(before)
        g[np.arange(53), np.where(live, y, 0)] -= 1
        return g * live[:, None] / 52
    return (53,), dict(
        X_ptr=x, X_stride=n, Y_ptr=y, Y_stride=1, weight_ptr=None, loss_ptr=loss, z_loss_ptr=None, loss_stride=1, token_accuracy_ptr=None,
        token_accuracy_stride=0, predicted_tokens_ptr=None, predicted_tokens_stride=0, n_cols=n, n_non_ignore=52, sum_non_ignore_weight=52,
        weight_sum=0.0, ignore_index=-100, lse_square_scale=0.0, label_smoothing=0.0, reduction="mean", softcap=None, RETURN_Z_LOSS=False,
        RETURN_TOKEN_ACCURACY=False, RETURN_PREDICTED_TOKENS=False, BLOCK_SIZE=4096, HAS_WEIGHT=False, HAS_SOFTCAPPING=False,
        HAS_GRADIENTS=True), [
        (loss, lambda: -np.log(softmax(before)[np.arange(53), np.where(live, y, 0)]) * live / 52, 1e-5), (x, gradient, 1e-5)]


@kernel("fla/ops/utils/softmax.py", "softmax_fwd_kernel")
def _():
    x, p = f32(31, 300) * 5, np.zeros((31, 300), np.float32)
    return (31,), dict(x=x, p=p, D=300, B=512), [(p, lambda: softmax(x.astype(np.float64)), 1e-6)]


@kernel("fla/modules/norm/l2norm.py", "l2norm_fwd_kernel")
def _():
    x, y, r = f32(105, 100), np.zeros((105, 100), np.float32), np.zeros(105, np.float32)
    rstd = lambda: 1 / np.sqrt((x.astype(np.float64) ** 2).sum(-1) + 1e-6)  # noqa: E731
    return (cdiv(105, 8),), dict(x=x, y=y, rstd=r, eps=1e-6, T=105, D=100, BD=128, NB=1, BT=8), [
        (r, rstd, 1e-6), (y, lambda: x * rstd()[:, None], 1e-6)]


# ---- moves, scans, counts --------------------------------------------------------------------------------------------
@kernel("liger_kernel/ops/rope.py", "_triton_rope")
def _():
    q, k, angle = f32(2, 33, 6, 64), f32(2, 33, 3, 64), random.uniform(0, 6, (33, 32))
    cos, sin = (np.concatenate([f(angle)] * 2, -1).astype(np.float32) for f in (np.cos, np.sin))
    old = [q.copy(), k.copy()]
    def turned(x):
        half = np.concatenate([-x[..., 32:], x[..., :32]], -1)
        return x * cos[None, :, None] + half * sin[None, :, None]
    return (66,), dict(q_ptr=q, q_row_stride=384, k_ptr=k, k_row_stride=192, cos=cos, cos_row_stride=64, sin=sin, sin_row_stride=64, sl=33,
                       bs=2, cos_bs=1, n_qh=6, n_kh=3, hd=64, pad_n_qh=8, pad_n_kh=4, pad_hd=64, pad_rd=64, rd=64, BLOCK_SIZE=8,
                       BACKWARD_PASS=False), [(q, lambda: turned(old[0]), 1e-6), (k, lambda: turned(old[1]), 1e-6)]


@kernel("liger_kernel/ops/experimental/embedding.py", "embedding_forward_kernel")
def _():
    table, rows, out = f32(90, 200), random.integers(0, 90, 333), np.zeros((333, 200), np.float32)
    return (cdiv(333, 128), cdiv(200, 128)), dict(embeddings_ptr=table, indices_ptr=rows, output_ptr=out, n_elements=333, embedding_dim=200,
                                                  BLOCK_SIZE_M=128, BLOCK_SIZE_N=128), [(out, lambda: table[rows], 0)]


@kernel("fla/ops/utils/cumsum.py", "chunk_local_cumsum_scalar_kernel")
def _():
    s, o = f32(2, 1000, 4), np.zeros((2, 1000, 4), np.float32)
    chunks = lambda: np.concatenate([np.cumsum(s[:, t:t + 64].astype(np.float64)[:, ::-1], 1)[:, ::-1] for t in range(0, 1000, 64)], 1)  # noqa: E731
    return (cdiv(1000, 64) * 8,), dict(s=s, o=o, scale=None, cu_seqlens=None, chunk_indices=None, T=1000, B=2, H=4, BT=64, REVERSE=True,
                                       HAS_SCALE=False, IS_VARLEN=False, USE_GRAPH=False), [(o, chunks, 1e-6)]


@kernel("flag_gems/ops/embedding_dense_backward.py", "_embedding_dense_backward_count_kernel")
def _():
    rows, counts = random.integers(0, 50, 3000), np.zeros(50, np.int32)
    return (cdiv(3000, 512),), dict(indices_ptr=rows, counts_ptr=counts, N=3000, num_weights=50, padding_idx=3, BLOCK_N=512), [
        (counts, lambda: np.bincount(rows, minlength=50) * (np.arange(50) != 3), 0)]


@kernel("flag_gems/ops/argmax.py", "argmax_kernel_inner")
def _():
    x, out = random.integers(-9, 9, (300, 65)).astype(np.float32), np.zeros(300, np.int64)  # many ties: the first counts
    return (300,), dict(inp=x, out_index=out, M=300, N=65, TILE_N=128, ONE_TILE_PER_CTA=True), [(out, lambda: x.argmax(-1), 0)]


@kernel("flag_gems/ops/topk.py", "topk_stage1_kernel")
def _():
    x, y, at = f32(3, 2048), np.zeros((3, 2, 5), np.float32), np.zeros((3, 2, 5), np.int64)
    order = lambda: np.argsort(-x.reshape(3, 2, 1024), -1, kind="stable")[..., :5]  # noqa: E731
    return (3, 2), dict(y_ptr=y, index_ptr=at, x_ptr=x, k=5, N=2048, CHUNK_SIZE=1024, DESCENDING=True), [
        (y, lambda: np.take_along_axis(x.reshape(3, 2, 1024), order(), -1), 0), (at, lambda: order() + np.array([0, 1024])[None, :, None], 0)]


@kernel("flag_gems/ops/rand.py", "rand_kernel")
def _():
    n, out = 3000, np.zeros(3000, np.float32)
    def numbers():
        """Philox 4x32-10, counters (i, 0, 0, 0); an integer becomes a number in [0, 1)."""
        i = np.arange(cdiv(n, 2048) * 512, dtype=np.uint64)
        c, key, m = [i, i * 0, i * 0, i * 0], [20231122, 0], 0xFFFFFFFF
        for _ in range(10):
            a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
            c = [(b >> 32) ^ c[1] ^ key[0], b & m, (a >> 32) ^ c[3] ^ key[1], a & m]
            key = [(key[0] + 0x9E3779B9) & m, (key[1] + 0xBB67AE85) & m]
        signed = np.stack(c).astype(np.uint32).view(np.int32)
        u = np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(4.6566127342e-10)
        return u.reshape(4, -1, 512).transpose(1, 0, 2).reshape(-1)[:n]
    return (cdiv(n, 2048),), dict(out_ptr=out, N=n, philox_seed=20231122, philox_offset=0, BLOCK=512), [(out, numbers, 0)]


# ---- products ----------------------------------------------------------------------------------------------------------
@kernel("flag_gems/ops/mm.py", "mm_kernel_general")
def _():
    a, b, c = f32(65, 130), f32(130, 77), np.zeros((65, 77), np.float32)
    return (cdiv(65, 64) * cdiv(77, 64),), dict(A=a, B=b, C=c, M=65, N=77, K=130, stride_am=130, stride_ak=1, stride_bk=77, stride_bn=1,
                                                stride_cm=77, stride_cn=1, BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, GROUP_M=8), [
        (c, lambda: a.astype(np.float64) @ b, 1e-6)]


@kernel("flag_gems/ops/addmm.py", "addmm_kernel")
def _():
    a, b, i, c = to_bf16(f32(70, 200)), to_bf16(f32(200, 50)), to_bf16(f32(50)), np.zeros((70, 50), np.uint16)
    return (1, 1), dict(a_ptr=a, b_ptr=b, i_ptr=i, c_ptr=c, alpha=2.0, beta=0.5, M=70, N=50, K=200, stride_am=200, stride_ak=1, stride_bk=50,
                        stride_bn=1, stride_im=0, stride_in=1, stride_cm=50, stride_cn=1, BLOCK_SIZE_M=128, BLOCK_SIZE_N=64,
                        BLOCK_SIZE_K=64), [
        (c, lambda: 2.0 * (from_bf16(a).astype(np.float64) @ from_bf16(b)) + 0.5 * from_bf16(i), 6e-3)]


@kernel("flag_gems/ops/conv2d.py", "conv2d_forward_kernel")
def _():
    x, w, bias, out = f32(2, 6, 14, 15), f32(8, 3, 3, 3), f32(8), np.zeros((2, 8, 7, 8), np.float32)
    def conv():
        z, want = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1))), np.zeros(out.shape)
        for o in range(8):
            for i in range(7):
                for j in range(8):
                    patch = z[:, 3 * (o // 4):3 * (o // 4) + 3, 2 * i:2 * i + 3, 2 * j:2 * j + 3]
                    want[:, o, i, j] = (patch * w[o]).sum((1, 2, 3)) + bias[o]
        return want
    return (cdiv(2 * 7 * 8, 32), 1, 2), dict(
        input_pointer=x, weight_pointer=w, output_pointer=out, bias_pointer=bias, in_n=2, input_height=14, input_width=15, out_c=8,
        out_height=7, out_width=8, input_n_stride=1260, input_c_stride=210, input_height_stride=15, input_width_stride=1, weight_n_stride=27,
        weight_c_stride=9, weight_height_stride=3, weight_width_stride=1, output_n_stride=448, output_c_stride=56, output_height_stride=8,
        output_width_stride=1, weight_c=3, weight_height=3, weight_width=3, stride_height=2, stride_width=2, padding_height=1,
        padding_width=1, dilation_height=1, dilation_width=1, groups=2, BLOCK_NI_HO_WO=32, BLOCK_CI=32, BLOCK_CO=32), [(out, conv, 1e-6)]


@kernel("fla/ops/attn/parallel.py", "parallel_attn_fwd_kernel")
def _():
    q, k, v = f32(1, 133, 4, 64), f32(1, 133, 2, 64), f32(1, 133, 2, 64)
    o, lse = np.zeros((1, 133, 4, 64), np.float32), np.zeros((1, 133, 4), np.float32)
    def attention():
        heads = np.repeat(k, 2, 2).astype(np.float64), np.repeat(v, 2, 2).astype(np.float64)
        scores = np.einsum("bihd,bjhd->bhij", q, heads[0]) * 0.125
        scores = np.where(np.tri(133, dtype=bool), scores, -np.inf)
        return np.einsum("bhij,bjhd->bihd", softmax(scores), heads[1])
    return (2, 4), dict(q=q, k=k, v=v, o=o, g_cumsum=None, sink_bias=None, lse=lse, scale=0.125, cu_seqlens=None, chunk_indices=None, T=133,
                        W=None, B=1, H=2, HQ=4, G=2, K=64, V=64, BT=128, BS=32, BK=64, BV=64, USE_G=False, USE_SINK_BIAS=False,
                        USE_WINDOW=False, IS_VARLEN=False), [(o, attention, 1e-5)]


# ---- running -------------------------------------------------------------------------------------------------------------
def error_of(got, want):
    if got.dtype == np.uint16:
        got = from_bf16(got)
    if got.shape != want.shape:
        return float("inf")
    if got.dtype.kind == "i":
        return float((got != want).sum())
    got, want = got.astype(np.float64), want.astype(np.float64)
    if not np.isfinite(got).all():
        return float("inf")
    return float(np.linalg.norm(got - want) / (np.linalg.norm(want) or 1.0))


def run(runner, packages, file, name, make):
    """(largest error, what is wrong or None)"""
    grid, values, results = make()
    plain = {n: Pointer(TYPES[x.dtype.name], x.ctypes.data) if isinstance(x, np.ndarray) else x for n, x in values.items()}
    image, _, _ = runner.compile(packages / file, name, plain, [str(packages)])
    runner.launch(image, grid, plain)
    worst, wrong = 0.0, None
    for got, want, bound in results:
        error = error_of(got, want())
        worst = max(worst, error)
        if not error <= bound:
            wrong = f"error {error:.2g}, allowed {bound:.2g}"
    return worst, wrong


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", default=str(ROOT / "build"))
    p.add_argument("--packages", type=Path, default=ROOT / "build/deps/kernels")
    p.add_argument("filters", nargs="*")
    a = p.parse_args()
    if not (a.packages / "ready").is_file():
        print(f"skipped: {a.packages} does not hold the packages of kernels; scripts/setup fetches them, and needs the network for it")
        return 77
    packages = a.packages.resolve()
    runner, right, total = Runner(str(Path(a.build).resolve() / "libditron.so")), 0, 0
    for file, name, make in KERNELS:
        if a.filters and not any(f in f"{file}:{name}" for f in a.filters):
            continue
        start, error = time.monotonic(), 0.0
        try:
            error, wrong = run(runner, packages, file, name, make)
        except Refused as e:
            wrong = str(e)
        total, right = total + 1, right + (not wrong)
        print(f"{file + ':' + name:86} {error:8.1g} {time.monotonic() - start:6.2f} s  {'WRONG: ' + wrong if wrong else 'right'}", flush=True)
    print(f"right {right} of {total} kernels")
    return 0 if total and right == total else 1


if __name__ == "__main__":
    sys.exit(main())
