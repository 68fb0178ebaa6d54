"""Attention in float64, and problems of it: shared by tests."""
import numpy as np

from _library import as_type

rng = np.random.default_rng(17)


def reference(q, k, v, scale, causal, dout=None, shift=None):
    """One head: q [m, D], k, v [n, D] in float64. (out, lse) or (dq, dk, dv); a query that sees nothing gives 0 and -inf."""
    m, n = len(q), len(k)
    s = q @ k.T * scale
    if causal:
        s = np.where(np.arange(n)[None, :] <= np.arange(m)[:, None] + (n - m if shift is None else shift), s, -np.inf)
    top = s.max(1, keepdims=True, initial=-np.inf)
    e = np.exp(s - np.where(np.isinf(top), 0, top))
    total = e.sum(1, keepdims=True)
    p = e / np.where(total > 0, total, 1)
    out = p @ v
    with np.errstate(divide="ignore"):
        lse = (top + np.log(total))[:, 0]
    if dout is None:
        return out, lse
    ds = p * (dout @ v.T - (dout * out).sum(1, keepdims=True))
    return ds @ k * scale, ds.T @ q * scale, p.T @ dout


class Problem:
    """Random q, k, v of batches of sequences, dense in [batch, heads, seq, D] or [batch, seq, heads, D], or packed."""

    def __init__(self, lens_q, lens_k, heads, kv_heads, d, causal, dtype, layout):
        self.heads, self.kv_heads, self.d, self.causal, self.dtype = heads, kv_heads, d, causal, dtype
        self.lens_q, self.lens_k, self.layout, self.scale = lens_q, lens_k, layout, d ** -0.5
        self.cu_q, self.cu_k = (np.cumsum([0, *x]).astype(np.int32) for x in (lens_q, lens_k))
        self.q, self.k, self.v, self.dout = (self.tensor(self.spread(rng.standard_normal((sum(lens), h, d)), lens))
                                             for lens, h in ((lens_q, heads), (lens_k, kv_heads), (lens_k, kv_heads), (lens_q, heads)))

    def spread(self, rows, lens):
        """[rows, heads, D] in this problem's layout."""
        if self.layout == "packed":
            return rows
        x = rows.reshape(len(lens), lens[0], *rows.shape[1:])
        return x.transpose(0, 2, 1, 3) if self.layout == "bhsd" else x

    def rows(self, x, lens, heads):
        """Back to [rows, heads, D] in float64."""
        x = np.asarray(x, np.float64)
        if self.layout == "packed":
            return x
        x = x.transpose(0, 2, 1, 3) if self.layout == "bhsd" else x
        return x.reshape(sum(lens), heads, self.d)

    def tensor(self, x):
        return as_type(np.ascontiguousarray(x), self.dtype)

    def like(self, t, fill=0.0, dtype=None):
        return as_type(np.full(t[0].shape, fill), dtype or self.dtype)[1]

    def strides(self, heads, seq):
        """(batch, head, row)"""
        d = self.d
        return {"packed": (0, d, heads * d), "bhsd": (heads * seq * d, seq * d, d), "bshd": (seq * heads * d, d, heads * d)}[self.layout]

    def per_row(self, parts):
        """What kernels store a head and row: [batch, heads, seq], packed [heads, rows]."""
        if self.layout == "packed":
            return np.concatenate(parts, axis=1)
        return np.stack(parts)

    def references(self, backward=False):
        group = self.heads // self.kv_heads
        q, k, v = self.rows(self.q[0], self.lens_q, self.heads), *(self.rows(x[0], self.lens_k, self.kv_heads) for x in (self.k, self.v))
        dout = self.rows(self.dout[0], self.lens_q, self.heads)
        out, lse, delta = np.zeros_like(q), [], []
        dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(k)
        for b in range(len(self.lens_q)):
            mine, keys = slice(self.cu_q[b], self.cu_q[b + 1]), slice(self.cu_k[b], self.cu_k[b + 1])
            lse_b = np.zeros((self.heads, self.lens_q[b]))
            for h in range(self.heads):
                one = q[mine, h], k[keys, h // group], v[keys, h // group], self.scale, self.causal
                out[mine, h], lse_b[h] = reference(*one)
                if backward:
                    gq, gk, gv = reference(*one, dout[mine, h])
                    dq[mine, h] = gq
                    dk[keys, h // group] += gk
                    dv[keys, h // group] += gv
            lse.append(lse_b)
            delta.append((dout[mine] * out[mine]).sum(-1).T)
        lay = lambda x, lens: self.spread(x, lens)  # noqa: E731
        if backward:
            return (lay(out, self.lens_q), self.per_row(lse), self.per_row(delta), lay(dq, self.lens_q), lay(dk, self.lens_k), lay(dv, self.lens_k))
        return lay(out, self.lens_q), self.per_row(lse)

    def values(self):
        packed = self.layout == "packed"
        sq, sk = (max(x, default=0) for x in (self.lens_q, self.lens_k))
        qb, qh, qr = self.strides(self.heads, sq)
        kb, kh, kr = self.strides(self.kv_heads, sk)
        return dict(q_ptr=self.q[1], k_ptr=self.k[1], v_ptr=self.v[1], cu_q_ptr=self.cu_q if packed else "None",
                    cu_k_ptr=self.cu_k if packed else "None", scale=float(self.scale), seq_q=sq, seq_k=sk, rows_q=sum(self.lens_q),
                    q_batch=qb, q_head=qh, q_row=qr, k_batch=kb, k_head=kh, k_row=kr, heads=self.heads, kv_heads=self.kv_heads,
                    HEAD_DIM=self.d, CAUSAL=self.causal)
