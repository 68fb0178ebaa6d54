"""Packages that ask for a GPU before they let themselves be read: what they get here in place of an answer.

Their modules can be imported one by one, without what their __init__ does; modules that host code only mentions are
stood in for; torch says that there is a GPU of a kind. Nothing that stands in is of use to a kernel.
"""
import contextlib
import importlib
import os
import sys
import types
from importlib.machinery import PathFinder
from pathlib import Path

import torch
import triton
import triton.language as tl

# Where the packages are, and those of which only the sources are there: beside torch in the environment of scripts/setup-corpus,
# or all in one folder of what scripts/pack-corpus packed. Paths without links.
PACKED = Path(__file__).resolve().parents[2] / "packages"
PACKAGES = PACKED if PACKED.is_dir() else Path(torch.__file__).resolve().parents[1]
SOURCES = PACKED if PACKED.is_dir() else PACKAGES.parents[3] / "corpus-src"
# what they take to other ways with where it is installed; the cases are written for an environment without
ABSENT = {"bitsandbytes", "causal_conv1d", "cutlass", "fbgemm_gpu", "flash_attn", "flash_qla", "peft", "redis", "tilelang", "torchao",
          "transformers"}


class Finder(PathFinder):
    """Finds all modules but ABSENT."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in ABSENT else super().find_spec(name, path, target)


def choose_modules():
    """Makes the modules that can be imported those that the cases know, on a machine that has others too, and torch one
    without a GPU: what host code does is the same on every machine. CUDA stays untouched in this process, as it must be
    for its children, which run the cases, to use it."""
    sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
    if PACKED.is_dir():
        sys.path.insert(0, str(PACKED))
    torch.cuda.is_available = lambda: False
    torch.cuda.device_count = lambda: 0


def bare_package(name, **attributes):
    """A package whose __init__ is not run: its modules can be imported one by one."""
    m = types.ModuleType(name)
    m.__path__ = [str(folder.joinpath(*name.split("."))) for folder in (PACKAGES, SOURCES)]
    m.__dict__.update(attributes)
    sys.modules[name] = m
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, m)


def nothing(fn=None, *args, **kwargs):
    """As a decorator, with arguments or without, it changes nothing."""
    return fn if callable(fn) else nothing


nothing.stands_in = True


class Quiet:
    """A logger, or any object whose methods do nothing."""
    stands_in = True

    def __getattr__(self, name):
        return nothing


def mentioned(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name[0].isupper():
        return type(name, (), {"stands_in": True})  # to inherit from
    return Quiet() if name == "logger" else nothing


def absent_module(name, **attributes):
    """Stands for a module that is not installed and that host code only mentions."""
    m = types.ModuleType(name)
    m.__dict__.update(attributes, __path__=[], __getattr__=mentioned, stands_in=True)
    sys.modules[name] = m


class Properties:
    """Of a GPU that is not there, for host code that chooses blocks by them."""
    name, major, minor = "H100", 9, 0
    multi_processor_count, warp_size, max_threads_per_multi_processor = 4, 32, 2048
    shared_memory_per_block, shared_memory_per_block_optin, shared_memory_per_multiprocessor = 49152, 232448, 233472
    L2_cache_size, total_memory = 50 << 20, 80 << 30


class Seeds:
    """A generator of a GPU: two words of state."""

    def __init__(self):
        self.state = torch.tensor([20231122, 0], dtype=torch.int64)

    def get_state(self):
        return self.state.clone()

    def set_state(self, state):
        self.state = state.clone()


class Device(contextlib.nullcontext):
    idx = 0


def without_gpu():
    cuda = torch.cuda
    cuda.default_generators = (Seeds(),)
    cuda.current_device = lambda: 0
    cuda.get_device_name = lambda device=None: Properties.name
    cuda.get_device_capability = lambda device=None: (9, 0)
    cuda.get_device_properties = lambda device=None: Properties
    cuda.device = lambda index: Device()
    torch._C._cuda_getCurrentRawStream = lambda index: 0
    cuda.device_of = lambda tensor: contextlib.nullcontext()


class Platform:
    """None of the devices that host code asks for."""
    stands_in = True

    def fp8_dtype(self):
        return torch.float8_e4m3fn

    def get_device_name(self, device=0):
        return Properties.name

    def __getattr__(self, name):
        return lambda *args, **kwargs: False


def flag_gems():
    """flag_gems without its package of operators; it takes this machine for a CPU, and its kernels are those for GPUs."""
    if "flag_gems" in sys.modules:
        return
    os.environ["GEMS_VENDOR"] = "nvidia"
    without_gpu()
    bare_package("flag_gems", vendor_name="nvidia", device="cpu")
    for name in ("flag_gems.ops", "flag_gems.fused"):
        bare_package(name)
    importlib.import_module("flag_gems.runtime").device.name = "cpu"


def vllm():
    """vllm's kernels without its engine."""
    if "vllm" in sys.modules:
        return
    without_gpu()
    for path in sorted((SOURCES / "vllm").rglob("__init__.py")):
        name = ".".join(path.parent.relative_to(SOURCES).parts)
        bare_package(name)
    absent_module("vllm.triton_utils", triton=triton, tl=tl, HAS_TRITON=True)
    for name in ("logger", "platforms", "_custom_ops", "envs", "utils", "utils.deep_gemm", "distributed", "config",
                 "attention.backends.utils", "v1.sample.metadata", "v1.spec_decode.metadata",
                 "v1.sample.ops.topk_topp_sampler", "model_executor.layers.quantization.utils.flashinfer_utils",
                 "model_executor.layers.quantization.utils.mxfp4_utils", "model_executor.layers.quantization.utils.quant_utils",
                 *(f"model_executor.layers.fused_moe.{n}" for n in (
                     "modular_kernel", "config", "cutlass_moe", "deep_gemm_moe", "moe_align_block_size", "prepare_finalize",
                     "topk_weight_and_reduce", "utils", "rocm_aiter_fused_moe"))):
        absent_module(f"vllm.{name}", current_platform=Platform(), PAD_SLOT_ID=-1, init_logger=lambda name: Quiet())


def unsloth():
    """unsloth's kernels without its package for models."""
    if "unsloth" in sys.modules:
        return
    from packaging.version import Version
    without_gpu()
    for name in ("transformers", "transformers.models", "transformers.models.llama", "transformers.models.llama.modeling_llama"):
        absent_module(name)
    for name in ("", ".log", ".loss_utils", ".patching_utils", ".temporary_patches", ".temporary_patches.common"):
        absent_module("unsloth_zoo" + name)
    absent_module("unsloth_zoo.utils", Version=lambda v: Version(str(v)))
    for name in ("unsloth", "unsloth.kernels"):
        bare_package(name)
    absent_module("unsloth.device_type", is_hip=lambda: False, get_device_type=lambda: "cuda", DEVICE_TYPE="cuda",
           DEVICE_TYPE_TORCH="cuda", DEVICE_COUNT=1, ALLOW_PREQUANTIZED_MODELS=True)
