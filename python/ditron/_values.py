"""What the package knows of other libraries' objects: how they are passed to kernels, and how constants are written in a request
to compile. Called by the native part for types it has not met; no library is imported here, they are looked up where loaded."""
import inspect
import struct
import sys

# as in _ditron.h
(UNKNOWN, INT, FLOAT, CONST, WRAPPED, TORCH, NUMPY, FOREIGN, DESC, INDEX, REAL, TRUTH) = range(12)

# as in ditron.h
NONE, PTR, INTEGER, FLOATING, BOOL, STR, DTYPE, FUNC, DESCRIPTOR = range(9)
DTYPES = "i1 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2".split()
CODE = {name: i for i, name in enumerate(DTYPES)}
SPELLINGS = {
    "bool": "i1", "int1": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "half": "f16", "fp16": "f16", "float16": "f16", "bf16": "bf16", "bfloat16": "bf16",
    "fp32": "f32", "float32": "f32", "float": "f32", "fp64": "f64", "float64": "f64", "double": "f64", "int": "i32",
    "long": "i64", "short": "i16", "fp8e4nv": "f8e4m3", "float8e4nv": "f8e4m3", "float8_e4m3fn": "f8e4m3", "fp8e5": "f8e5m2",
    "float8e5": "f8e5m2", "float8_e5m2": "f8e5m2", **{d: d for d in DTYPES}}
TYPESTR = {"b1": "i1", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64",
           "f2": "f16", "f4": "f32", "f8": "f64"}
DLPACK = {(0, 8): "i8", (0, 16): "i16", (0, 32): "i32", (0, 64): "i64", (1, 8): "u8", (1, 16): "u16", (1, 32): "u32",
          (1, 64): "u64", (2, 16): "f16", (2, 32): "f32", (2, 64): "f64", (4, 16): "bf16", (6, 8): "i1"}


def loaded(module, name):
    """A class of a module that the process has imported, or an empty tuple, which isinstance takes."""
    return getattr(sys.modules.get(module), name, ())


def is_dtype(o):
    """An element type: torch's, Triton's, NumPy's or ours."""
    if isinstance(o, type):
        return isinstance(loaded("numpy", "generic"), type) and issubclass(o, loaded("numpy", "generic"))
    return type(o).__name__ == "dtype" or isinstance(o, loaded("numpy", "dtype"))


def dtype_name(o):
    """"f16" for every spelling of it; None for what is no element type."""
    if isinstance(o, type):
        text = o.__name__.rstrip("_")
    else:
        text = getattr(o, "name", None) or str(o)
    return SPELLINGS.get(text.rpartition(".")[2])


def is_function(o):
    return inspect.isfunction(o) or (callable(o) and inspect.isfunction(getattr(o, "fn", None)))


def classify(o):
    if isinstance(o, int):
        return INT
    if isinstance(o, loaded("numpy", "bool_")):
        return TRUTH
    if isinstance(o, float):
        return FLOAT
    if isinstance(o, loaded("torch", "Tensor")):
        return TORCH
    if isinstance(o, loaded("numpy", "integer")):
        return INDEX
    if isinstance(o, loaded("numpy", "generic")):
        return REAL if hasattr(o, "__float__") else UNKNOWN
    if isinstance(o, str) or is_dtype(o) or is_function(o):
        return CONST
    if type(o).__name__ == "constexpr" and hasattr(o, "value"):
        return WRAPPED
    if all(hasattr(o, name) for name in ("base", "shape", "strides", "block_shape")):
        return DESC
    if hasattr(o, "data_ptr") and hasattr(o, "dtype") or hasattr(o, "__cuda_array_interface__"):
        return FOREIGN
    if hasattr(o, "__array_struct__"):
        return NUMPY
    if hasattr(o, "__array_interface__") or hasattr(o, "__dlpack__"):
        return FOREIGN
    if hasattr(o, "__index__"):
        return INDEX
    return REAL if hasattr(o, "__float__") else UNKNOWN


# ---- arrays of other libraries ----------------------------------------------------------------------


def code_of(name, what):
    if name is None:
        raise TypeError(f"arrays of {what} have no counterpart in a kernel")
    return CODE[name]


def device_number(kind, index):
    """0 the processor, n GPU n - 1; kind as DLPack numbers them."""
    if kind in (1, 3):
        return 0
    if kind in (2, 13):
        return 1 + index
    raise ValueError("lies on a device that Ditron does not know")


def interface(d, device):
    order, typestr = d["typestr"][0], d["typestr"][1:]
    if order == ">":
        raise TypeError("its bytes are not in the machine's order")
    return d["data"][0] or 0, code_of(TYPESTR.get(typestr), d["typestr"]), device, bool(d["data"][1])


def describe(o):
    """(address, dtype, device, read-only)"""
    if hasattr(o, "__cuda_array_interface__"):
        index = getattr(getattr(o, "device", None), "id", None)
        if index is None:
            index = o.__dlpack_device__()[1] if hasattr(o, "__dlpack_device__") else 0
        return interface(o.__cuda_array_interface__, 1 + index)
    if hasattr(o, "data_ptr"):
        from . import _ditron
        base = getattr(o, "base", o)  # what reinterprets a tensor's elements has it as its base
        device = getattr(base, "device", None)
        if base is not o:
            number = _ditron.device_of(base)
        else:
            number = 1 + (device.index or 0) if getattr(device, "type", "cpu") == "cuda" else 0
        return o.data_ptr(), code_of(dtype_name(o.dtype), o.dtype), number, False
    if hasattr(o, "__array_interface__"):
        return interface(o.__array_interface__, 0)
    from . import _ditron
    kind, index = (int(x) for x in o.__dlpack_device__())
    device = device_number(kind, index)
    address, code, bits, lanes = _ditron.dlpack(o.__dlpack__())
    return address, code_of(DLPACK.get((code, bits)) if lanes == 1 else None, f"DLPack type {code}, {bits} bits"), device, False


def describe_descriptor(o):
    """(base, sizes, strides, blocks)"""
    strides = tuple(int(x) for x in o.strides)
    if not strides or strides[-1] != 1:
        raise ValueError("the last axis of a tensor descriptor must be contiguous")
    if getattr(o, "padding", "zero") != "zero":
        raise ValueError("tensor descriptors are padded with zeros; other padding is not supported")
    return o.base, tuple(int(x) for x in o.shape), strides, tuple(int(x) for x in o.block_shape)


def current_stream(index=None):
    """The stream that the process is in on a GPU, as a number: torch's where torch is loaded, else the default one. Without an index
    the function of torch that says it."""
    torch = sys.modules.get("torch")
    if torch is None:
        return 0
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (lambda i: torch.cuda.current_stream(i).cuda_stream)
    return raw if index is None else raw(index)


# ---- constants in a request ---------------------------------------------------------------------------


def text(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<I", len(b)) + b


def constant(o, name_of_function):
    """A constant as a request has it, or None for what is none."""
    for _ in range(8):
        if type(o).__name__ != "constexpr" or not hasattr(o, "value"):
            break
        o = o.value
    if o is None:
        return bytes([NONE, 0])
    if isinstance(o, bool):
        return struct.pack("<BBq", BOOL, 0, o)
    if isinstance(o, int):
        if not -2**63 <= o < 2**64:
            return None
        kind = "i32" if -2**31 <= o < 2**31 else "i64" if o < 2**63 else "u64"
        return struct.pack("<BBq", INTEGER, CODE[kind], o if o < 2**63 else o - 2**64)
    if isinstance(o, float):
        return struct.pack("<BBd", FLOATING, CODE["f32"], o)
    if isinstance(o, str):
        return bytes([STR, 0]) + text(o)
    if is_dtype(o):
        name = dtype_name(o)
        return bytes([DTYPE, CODE[name]]) if name else None
    if is_function(o):
        return bytes([FUNC, 0]) + text(name_of_function(o))
    return None

