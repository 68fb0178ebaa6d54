"""Cold compiles for an NVIDIA GPU in a process that is up, nothing cached, with ptxas: PYTHONPATH=build/python python3 bench/gpu_compile.py [ROUNDS]
No GPU is needed. Least of the rounds: what the clock says, and the processor time of this process and of ptxas."""
import os
import resource
import struct
import sys
import time
from pathlib import Path

os.environ["DITRON_CACHE_OFF"] = "1"
from ditron import _compile, _ditron, _values  # noqa: E402

KERNELS = Path(__file__).resolve().parent.parent / "kernels"
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 20


def pointer(dtype):
    return struct.pack("<BBq", _values.PTR, _values.CODE[dtype], 4096)


def numbers(**values):
    return {name: struct.pack("<BBq", _values.INTEGER, _values.CODE["i32"], x) for name, x in values.items()}


TENSORS = {name: pointer("bf16") for name in ("a_ptr", "b_ptr", "c_ptr")}
GEMM = {**TENSORS, **numbers(M=4096, N=4096, K=4096, BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8)}
STRIDES = numbers(stride_am=4096, stride_ak=1, stride_bk=4096, stride_bn=1, stride_cm=4096, stride_cn=1)
ADD = {**{name: pointer("f32") for name in ("x_ptr", "y_ptr", "out_ptr")}, **numbers(n_elements=98432, BLOCK_SIZE=1024)}
CASES = [  # what, file, kernel, warps, stages, arguments, only the first variant
    ("GEMM through pointers, first variant", "matmul.py", "matmul_kernel", 8, 3, {**GEMM, **STRIDES}, True),
    ("the same, both variants", "matmul.py", "matmul_kernel", 8, 3, {**GEMM, **STRIDES}, False),
    ("persistent GEMM, descriptors", "matmul.py", "matmul_persistent_kernel", 8, 4, GEMM, True),
    ("vector add", "elementwise.py", "add_kernel", 4, 2, ADD, True),
]


def spent(who):
    used = resource.getrusage(who)
    return (used.ru_utime + used.ru_stime) * 1e3


def measure():
    return time.perf_counter() * 1e3, spent(resource.RUSAGE_SELF), spent(resource.RUSAGE_CHILDREN)


least = {}
for turn in range(ROUNDS + 1):  # the cases in turn; the first one warms up
    for what, file, kernel, warps, stages, args, first in CASES:
        request = _compile.request(str(KERNELS / file), None, kernel, "sm_90a", warps, stages, 0, True, [], {}, args, first)
        before = measure()
        _ditron.compile_here(request)
        took = [b - a for a, b in zip(before, measure())]
        if turn:
            least[what] = [min(x) for x in zip(took, least.get(what, took))]
for what, (wall, ours, assembler) in least.items():
    print(f"{what:40} {wall:7.1f} ms   processor: {ours:6.1f} ms ours, {assembler:6.1f} ms ptxas")
