# `ditron worker`: replies to requests, and outlives those that are none: cut short, with bytes changed, with counts that lie.
# TIMEOUT: 240
import os
import random
import struct
import subprocess
import sys
from pathlib import Path

from _ditron import case, finish

sys.path.insert(0, f"{os.environ['BUILD']}/python")

from ditron import _compile, _values  # noqa: E402

SEED = int(os.environ.get("SEED", "7"))
TEXT = """import ditron
import ditron.language as tl
@ditron.jit
def k(x_ptr, n, d, BLOCK: tl.constexpr, T: tl.constexpr, NAME: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n + LATER)
"""
CORRUPT = 5


def valid(text=TEXT, **changed):
    i64 = struct.Struct("<BBq")
    args = {"x_ptr": i64.pack(_values.PTR, _values.CODE["f32"], 16), "n": i64.pack(_values.INTEGER, _values.CODE["i32"], 32),
            "d": struct.pack("<BBBqqiqqi", _values.DESCRIPTOR, _values.CODE["f16"], 2, 16, 16, 16, 16, 1, 32),
            "BLOCK": _values.constant(16, None), "T": _values.constant(None, None), "NAME": _values.constant("text", None), **changed}
    return _compile.request("k.py", text, "k", "host", 4, 2, 128, False, ["/nowhere"], {"LATER": _values.constant(2.5, None)}, args)


def exchange(worker, request):
    worker.stdin.write(struct.pack("<I", len(request)) + request)
    worker.stdin.flush()
    head = worker.stdout.read(4)
    assert len(head) == 4, f"the worker ended: {worker.wait()}"
    reply = worker.stdout.read(struct.unpack("<I", head)[0])
    status, n = struct.unpack_from("<iI", reply)
    return status, reply[8:8 + n].decode(errors="replace"), reply


def start(**env):
    return subprocess.Popen([_compile.PROGRAM, "worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            env=dict(os.environ, DITRON_CACHE_OFF="1", **env))


def replies():
    with start() as worker:
        status, error, reply = exchange(worker, valid())
        assert status == 0 and not error and b"DTKIMAGE" in reply
        status, error, _ = exchange(worker, valid(TEXT.replace("n + LATER", "missing")))
        assert status == 3 and "'missing' is not defined" in error and "k.py:5" in error
        status, error, _ = exchange(worker, valid(BLOCK=_values.constant(12, None)))
        assert status == 3 and "power of two" in error
        status, error, reply = exchange(worker, valid())
        assert status == 0
        worker.stdin.close()
        assert worker.wait(20) == 0


def damaged():
    r = random.Random(SEED)
    good = valid()
    with start() as worker:
        for n in range(len(good)):
            if n % 7 == 0:
                status, error, _ = exchange(worker, good[:n])
                assert status == CORRUPT and "no request" in error, (n, status, error)
        assert exchange(worker, good + b"x")[0] == CORRUPT
        for turn in range(400):
            b = bytearray(good)
            for _ in range(r.choice((1, 1, 2, 8))):
                b[r.randrange(len(b))] = r.choice((0, 1, 127, 128, 255, r.randrange(256)))
            status, error, _ = exchange(worker, bytes(b))
            assert status == 0 or error, (SEED, turn, status)
        assert exchange(worker, good)[0] == 0
        worker.stdin.close()
        assert worker.wait(20) == 0


def too_large():
    """A length that no request has ends it, without an attempt to read so much."""
    with start() as worker:
        worker.stdin.write(struct.pack("<I", 0xFFFFFFFF))
        worker.stdin.close()
        assert worker.stdout.read() == b"" and worker.wait(20) == 1


def idle():
    with subprocess.Popen([_compile.PROGRAM, "worker", "--idle", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.wait(60) == 0
    assert Path(_compile.PROGRAM).exists()


for fn in (replies, damaged, too_large, idle):
    case(fn.__name__, fn)
finish()
