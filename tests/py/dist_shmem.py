"""libshmem_device name by name on 2, 4 and 8 ranks: copies by a thread, a warp, a block, with and without signal, collectives,
teams, multicast. Checked, as threads and as processes. TIMEOUT: 600"""
import tempfile
from pathlib import Path

import numpy as np

from _ditron import case, finish, run_kernel
from _kernels import HEAD

i32, i64, f32 = np.int32, np.int64, np.float32
MODES = {"check": dict(mode=["--check", "--seed", "5"]), "threads": {}, "processes": dict(processes=True)}
rng = np.random.default_rng(5)


def run(how, world, source, values, outs, grid=(1,)):
    opts = dict(MODES[how])
    if opts.pop("processes", False):
        opts["prefix"] = ["ditron", "launch", "-n", str(world)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.py"
        path.write_text(HEAD + source)
        return run_kernel(str(path), list(grid), values, outs, ranks=world, **opts)


def eq(got, want, what=""):
    np.testing.assert_array_equal(got, want, err_msg=what)


def per_rank(world, n):
    return [rng.standard_normal(n).astype(f32) for _ in range(world)]


WHO = {"": "t == 0", "_warp": "t < 32", "_block": "True"}


def puts(how, world, n):
    """Each of putmem's forms sends x to the right neighbour's part of its own; getmem's fetch it back from there."""
    forms = [f"{nbi}{who}" for nbi in ("", "_nbi") for who in WHO]
    put = get = ""
    for k, form in enumerate(forms):
        rma = "_rma" if k % 2 else ""
        cond = WHO[form.replace("_nbi", "")]
        ind = "    " if cond == "True" else "        "
        head = "" if cond == "True" else f"    if {cond}:\n"
        put += f"{head}{ind}libshmem_device.putmem{rma}{form}(y + {k} * n, x, 4 * n, right)\n"
        get += f"{head}{ind}libshmem_device.getmem{form}(z + {k} * n, y + {k} * n, 4 * n, right)\n"
    x = per_rank(world, n)
    got = run(how, world, f"""
@triton.jit
def k(x, y, z, n):
    t = tid(0)
    right = (libshmem_device.my_pe() + 1) % libshmem_device.n_pes()
{put}    libshmem_device.quiet()
    libshmem_device.barrier_all_block()
{get}    libshmem_device.quiet()
    __syncthreads()
""", dict(x=x, y=("sym", np.zeros(6 * n, f32)), z=np.zeros(6 * n, f32), n=n), ["y", "z"])
    for r in range(world):
        eq(got["y"][r].reshape(6, n), np.tile(x[(r - 1) % world], (6, 1)), f"put, rank {r}")
        eq(got["z"][r].reshape(6, n), np.tile(x[r], (6, 1)), f"get, rank {r}")


def signals(how, world, n):
    """Each of putmem_signal's forms sends x to every peer and adds one to, or sets, a word of its own there."""
    forms = [f"{rma}{nbi}{who}" for rma in ("", "_rma") for nbi in ("", "_nbi") for who in WHO]
    put = wait = ""
    for k, form in enumerate(forms):
        cond = WHO[form.replace("_nbi", "").replace("_rma", "")]
        op, value, want = ("ADD", 1, "n_pes") if k % 2 else ("SET", 7, "7")
        dst, sig = (f"y + ({k} * n_pes + me) * n", f"sig + {k} * n_pes" + ("" if k % 2 else " + me"))
        call = f"libshmem_device.putmem_signal{form}({dst}, x, 4 * n, {sig}, {value}, libshmem_device.NVSHMEM_SIGNAL_{op}, pe)"
        put += f"        {call}\n" if cond == "True" else f"        if {cond}:\n            {call}\n"
        if k % 2:
            wait += f"    libshmem_device.signal_wait_until(sig + {k} * n_pes, libshmem_device.NVSHMEM_CMP_EQ, {want})\n"
        else:
            wait += f"    for pe in range(n_pes):\n        libshmem_device.signal_wait_until(sig + {k} * n_pes + pe, " \
                    f"libshmem_device.NVSHMEM_CMP_GE, {want})\n"
    x = per_rank(world, n)
    m = len(forms)
    got = run(how, world, f"""
@triton.jit
def k(x, y, sig, out, n, total, BLOCK: tl.constexpr):
    t = tid(0)
    me = libshmem_device.my_pe()
    n_pes = libshmem_device.n_pes()
    for pe in range(n_pes):
{put}{wait}    __syncthreads()
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(y + offs, mask=offs < total), mask=offs < total)
""", dict(x=x, y=("sym", np.zeros(m * world * n, f32)), sig=("sym", np.zeros(m * world, i64)), out=np.zeros(m * world * n, f32), n=n,
          total=m * world * n, BLOCK=4096), ["out"])
    for r in range(world):
        eq(got["out"][r].reshape(m, world, n), np.tile(np.stack(x), (m, 1, 1)), f"rank {r}")


def collectives(how, world, n):
    """fcollect and broadcast in every form, twice over the same buffers."""
    lines = ""
    k = 0
    for name in ("fcollect", "fcollectmem", "broadcast", "broadcastmem"):
        for who, cond in WHO.items():
            count = "4 * n" if name.endswith("mem") else "n"
            root = f", {k} % n_pes" if name.startswith("b") else ""
            call = f"libshmem_device.{name}{who}(libshmem_device.NVSHMEM_TEAM_WORLD, y + {k} * n_pes * n, x, {count}{root})"
            lines += f"        {call}\n" if cond == "True" else f"        if {cond}:\n            {call}\n"
            k += 1
    x = per_rank(world, n)
    got = run(how, world, f"""
@triton.jit
def k(x, y, out, n, total, BLOCK: tl.constexpr):
    t = tid(0)
    n_pes = libshmem_device.team_n_pes(libshmem_device.NVSHMEM_TEAM_WORLD)
    offs = tl.arange(0, BLOCK)
    for call in range(2):
{lines}        __syncthreads()
        v = tl.load(y + offs, mask=offs < total)
        tl.store(out + call * total + offs, v, mask=offs < total)
        __syncthreads()
        libshmem_device.barrier_all_block()
""", dict(x=x, y=("sym", np.zeros(k * world * n, f32)), out=np.zeros(2 * k * world * n, f32), n=n, total=k * world * n,
          BLOCK=4096), ["out"])
    for r in range(world):
        for call in range(2):
            v = got["out"][r].reshape(2, k, world * n)[call]
            for j in range(6):
                eq(v[j], np.concatenate(x), f"fcollect {j}, rank {r}, call {call}")
            for j in range(6, 12):
                eq(v[j][:n], x[j % world], f"broadcast {j}, rank {r}, call {call}")


def words(how, world):
    """Single words: int_p, ulong_put_signal, signal_op, notify and wait, team names, remote_ptr."""
    got = run(how, world, """
@triton.jit
def k(a, u, src, sig, flag, out):
    t = tid(0)
    me = libshmem_device.team_my_pe(libshmem_device.NVSHMEMX_TEAM_NODE)
    n = libshmem_device.n_pes()
    right = libshmem_device.team_translate_pe(libshmem_device.NVSHMEM_TEAM_WORLD, (me + 1) % n, libshmem_device.NVSHMEM_TEAM_SHARED)
    if t == 0:
        libshmem_device.int_p(a, 100 + me, right)
        libshmem_device.fence()
        libshmem_device.signal_op(sig + 1, 3, libshmem_device.NVSHMEM_SIGNAL_ADD, right)
        libshmem_device.ulong_put_signal(u, src, 2, sig, 5, libshmem_device.NVSHMEM_SIGNAL_SET, right)
        libshmem_device.signal_wait_until(sig, libshmem_device.NVSHMEM_CMP_EQ, 5)
        libshmem_device.signal_wait_until(sig + 1, libshmem_device.NVSHMEM_CMP_GT, 2)
        st(out, ld(a))
        st(out + 1, ld(u).to(tl.int32))
        st(out + 2, ld(u + 1).to(tl.int32))
    __syncthreads()
    dl.notify(flag, right, signal=9, sig_op="set", comm_scope="intra_node")
    token = dl.wait(flag, 1, "sys", "acquire", waitValue=9)
    tl.store(out + 3, tl.load(dl.consume_token(libshmem_device.remote_ptr(a, me), token)))
    libshmem_device.uint64_wait_until_equals(flag, 9)
""", dict(a=("sym", np.zeros(1, i32)), u=("sym", np.zeros(2, i64)), src=[np.array([10 + r, 20 + r], i64) for r in range(world)],
          sig=("sym", np.zeros(2, i64)), flag=("sym", np.zeros(1, np.uint64)), out=np.zeros(4, i32)), ["out"])
    for r in range(world):
        left = (r - 1) % world
        eq(got["out"][r], [100 + left, 10 + left, 20 + left, 100 + left], f"rank {r}")


def multicast(how, world, dtype, n):
    """All-reduce by multimem: each thread adds up 16 bytes of all ranks and writes the sum to all."""
    x = [rng.integers(-8, 8, n).astype(dtype) for _ in range(world)]
    got = run(how, world, """
@triton.jit
def k(x, y, small, n_vec, PER: tl.constexpr):
    t = tid(0)
    me = libshmem_device.my_pe()
    world = libshmem_device.n_pes()
    libshmem_device.barrier_all_block()
    mc = libshmem_device.remote_mc_ptr(libshmem_device.NVSHMEM_TEAM_WORLD, x)
    my = libshmem_device.remote_mc_ptr(libshmem_device.NVSHMEM_TEAM_WORLD, y)
    for i in range(me * 128 + t, n_vec, world * 128):
        v0, v1, v2, v3 = language_extra.multimem_ld_reduce_v4(mc + i * PER)
        language_extra.multimem_st_v4(my + i * PER, v0, v1, v2, v3)
    if t == 1:
        language_extra.multimem_st_b32(small + me, me + 1)
        language_extra.multimem_st_p_b32(small + world + me, me + 1, me % 2 == 0)
        language_extra.multimem_st_b64(small + 2 * world + 2 * me, me.to(tl.int64) << 32)
    libshmem_device.barrier_all_block()
""", dict(x=("sym", x), y=("sym", np.zeros(n, dtype)), small=("sym", np.zeros(4 * world, i32)), n_vec=n * np.dtype(dtype).itemsize // 16,
          PER=16 // np.dtype(dtype).itemsize), ["y", "small"])
    for r in range(world):
        eq(got["y"][r], sum(v.astype(f32) for v in x).astype(dtype), f"rank {r}")
        one = np.arange(world) + 1
        want = np.concatenate([one, np.where(one % 2 == 1, one, 0), np.stack([np.zeros(world, int), one - 1], 1).ravel()])
        eq(got["small"][r], want, f"rank {r}")


for how in MODES:
    for world in (2, 4, 8):
        case(f"{how} put and get in every form, {world} ranks", puts, how, world, 37)
        case(f"{how} put with signal in every form, {world} ranks", signals, how, world, 37)
        case(f"{how} fcollect and broadcast in every form, {world} ranks", collectives, how, world, 37)
        case(f"{how} single words, {world} ranks", words, how, world)
    case(f"{how} multicast f32", multicast, how, 4, f32, 4 * 700)
    case(f"{how} multicast f16", multicast, how, 2, np.float16, 8 * 300)
finish()
