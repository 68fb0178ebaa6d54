"""What a kernel may ask about its target. Written by scripts/gen-docs from builtins.def."""
from ._base import outside


def cuda_capability_geq(major, minor=None):
    """False: kernels take their portable path"""
    outside("cuda_capability_geq")


def is_cuda():
    """False: kernels take their portable path"""
    outside("is_cuda")


def is_hip():
    """False: kernels take their portable path"""
    outside("is_hip")


def is_hip_cdna3():
    """False: kernels take their portable path"""
    outside("is_hip_cdna3")


def is_hip_cdna4():
    """False: kernels take their portable path"""
    outside("is_hip_cdna4")
