#!/usr/bin/env python3
"""What a launch from Python costs the host: the way from the call to the driver, and where torch sees a GPU the whole beside it.

    PYTHONPATH=build/python python3 bench/python_launch.py

An empty grid does everything but hand the launch over: binding, the key, the lookup and the conversion of the arguments. Prints the
least of the rounds, in microseconds of processor time of this thread, and one JSON object.
"""
import json
import sys
import time

import ditron
import ditron.language as tl

ROUNDS, CALLS = 25, 2000


@ditron.jit
def few(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


@ditron.jit
def many(a, b, c, d, e, f, M, N, K, s0, s1, s2, s3, s4, s5, scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACT: tl.constexpr):
    tl.store(a, scale)


def least(call):
    call()
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.thread_time()
        for _ in range(CALLS):
            call()
        best = min(best, (time.thread_time() - start) / CALLS)
    return best * 1e6


def ways(make):
    x, y, out = make(), make(), make()
    a = [make() for _ in range(6)]
    yield "5 arguments, empty grid", lambda: few[(0,)](x, y, out, 1024, BLOCK=16)
    yield "5 arguments, function as grid", lambda: few[lambda meta: (0, meta["BLOCK"])](x, y, out, 1024, BLOCK=16)
    yield "5 arguments, one program", lambda: few[(1,)](x, y, out, 16, BLOCK=16)
    yield "20 arguments, empty grid", lambda: many[(0,)](*a, 512, 512, 512, 512, 1, 512, 1, 512, 1, 0.5, BM=32, BN=32, BK=32, ACT="relu", num_warps=4)


def main():
    kinds, results = {}, {}
    try:
        import numpy
        kinds["numpy"] = lambda: numpy.zeros(1024, numpy.float32)
    except ImportError:
        pass
    try:
        import torch
        kinds["torch"] = lambda: torch.zeros(1024)
        if torch.cuda.is_available():
            kinds["torch cuda"] = lambda: torch.zeros(1024, device="cuda")
    except ImportError:
        pass
    for kind, make in kinds.items():
        for name, call in ways(make):
            results[f"{kind}: {name}"] = round(least(call), 3)
            print(f"{kind + ': ' + name:50} {results[f'{kind}: {name}']:8.2f} us", flush=True)
            if kind == "torch cuda":
                sys.modules["torch"].cuda.synchronize()
    print(json.dumps({"name": "python_launch", "us": results}))


if __name__ == "__main__":
    main()
