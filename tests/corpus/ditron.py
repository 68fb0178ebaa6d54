"""Ditron's C API by ctypes, as much of it as the corpus needs: compile one kernel of a file for arguments like these,
launch it over CPU tensors in place, or over copies on a device. No torch here: a pointer is ("ptr", dtype name, address)."""
import contextlib
import ctypes as c
import os
import time
from dataclasses import dataclass

NONE, PTR, INT, FLOAT, BOOL, STR, DTYPE, FUNC, DESC = range(9)
DTYPES = ("i1 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2").split()
CODE = {name: i for i, name in enumerate(DTYPES)}
MAX_RANK = 5
DEADLINE = 60
ALIGNED = 64  # what dt_alloc promises


class Desc(c.Structure):
    _fields_ = [("base", c.c_void_p), ("dtype", c.c_int), ("rank", c.c_int), ("shape", c.c_int64 * MAX_RANK),
                ("strides", c.c_int64 * MAX_RANK), ("block", c.c_int32 * MAX_RANK)]


class Payload(c.Union):
    _fields_ = [("ptr", c.c_void_p), ("i", c.c_int64), ("f", c.c_double), ("str", c.c_char_p), ("desc", c.POINTER(Desc))]


class Value(c.Structure):
    _fields_ = [("kind", c.c_int), ("dtype", c.c_int), ("u", Payload)]


class Named(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", Value)]


class CompileOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("target", c.c_char_p), ("num_warps", c.c_int), ("num_stages", c.c_int),
                ("search_path", c.POINTER(c.c_char_p)), ("globals", c.POINTER(Named)), ("nglobals", c.c_size_t),
                ("explain", c.c_bool), ("no_specialise", c.c_bool), ("no_asserts", c.c_bool), ("cached_only", c.c_bool),
                ("max_registers", c.c_int), ("first_only", c.c_bool)]


class ContextOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("cache_dir", c.c_char_p), ("deadline_seconds", c.c_double),
                ("print", c.c_void_p), ("user", c.c_void_p)]


class TeamOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("local_ranks", c.c_int), ("from_environment", c.c_bool), ("device", c.c_char_p),
                ("threads_per_rank", c.c_int), ("symmetric_bytes", c.c_size_t), ("trace", c.c_bool)]


class Device(c.Structure):
    _fields_ = [("name", c.c_char * 32), ("target", c.c_char * 16), ("text", c.c_char * 320), ("usable", c.c_bool)]


class KernelInfo(c.Structure):
    _fields_ = [("name", c.c_char_p), ("nargs", c.c_size_t), ("nvariants", c.c_size_t), ("arena_bytes", c.c_uint64),
                ("wait_class", c.c_char_p), ("num_warps", c.c_int)]


class Refused(Exception):
    """Ditron returned a status: its name, and the text for people."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text.strip()}")
        self.status, self.text = status, text


@dataclass
class Jit:
    """A function of a kernel file as a constexpr argument."""
    name: str


@dataclass
class Type:
    """An element type as a constexpr argument."""
    name: str


@dataclass
class Pointer:
    dtype: str
    address: int


@dataclass
class Tensor:
    """A tensor descriptor."""
    dtype: str
    address: int
    shape: tuple
    strides: tuple
    block: tuple


def value_of(x):
    v = Value()
    if x is None:
        v.kind = NONE
    elif isinstance(x, Pointer):
        v.kind, v.dtype, v.u.ptr = PTR, CODE[x.dtype], x.address
    elif isinstance(x, bool):
        v.kind, v.u.i = BOOL, x
    elif isinstance(x, int):
        v.kind, v.dtype = INT, CODE["i32"] if -2**31 <= x < 2**31 else CODE["i64"] if x < 2**63 else CODE["u64"]
        v.u.i = x if x < 2**63 else x - 2**64
    elif isinstance(x, float):
        v.kind, v.dtype, v.u.f = FLOAT, CODE["f32"], x
    elif isinstance(x, str):
        v.kind, v.u.str = STR, x.encode()
    elif isinstance(x, Type):
        v.kind, v.dtype = DTYPE, CODE[x.name]
    elif isinstance(x, Jit):
        v.kind, v.u.str = FUNC, x.name.encode()
    elif isinstance(x, Tensor):
        d = Desc(base=x.address, dtype=CODE[x.dtype], rank=len(x.shape))
        for i in range(len(x.shape)):
            d.shape[i], d.strides[i], d.block[i] = x.shape[i], x.strides[i], x.block[i]
        v.kind, v.dtype, v.u.desc = DESC, CODE[x.dtype], c.pointer(d)
    else:
        raise TypeError(f"an argument of type {type(x).__name__} has no form in the API")
    return v


def named(values):
    array = (Named * max(len(values), 1))()
    for i, (name, x) in enumerate(values.items()):
        array[i].name, array[i].value = name.encode(), value_of(x)
    return array


def memory_kib(field):
    """A line of /proc/self/status, in KiB."""
    with open("/proc/self/status") as f:
        return next((int(line.split()[1]) for line in f if line.startswith(field + ":")), 0)


class Runner:
    """One context, one rank on a device ("cpu", "cuda:0"), one stream."""

    def __init__(self, library, device="cpu"):
        self.lib = c.CDLL(library, mode=c.RTLD_LOCAL)
        self.lib.dt_error.restype = self.lib.dt_status_name.restype = self.lib.dt_kernel_arg_name.restype = c.c_char_p
        self.lib.dt_team_local.restype = c.c_void_p
        self.context, self.team, self.stream = c.c_void_p(), c.c_void_p(), c.c_void_p()
        o = ContextOptions(size=c.sizeof(ContextOptions), cache_dir=b"", deadline_seconds=DEADLINE)
        self.check(self.lib.dt_context_create(c.byref(o), c.byref(self.context)))
        t = TeamOptions(size=c.sizeof(TeamOptions), device=device.encode(), symmetric_bytes=1 << 20)
        self.check(self.lib.dt_team_create(self.context, c.byref(t), c.byref(self.team)))
        self.target = None if device == "cpu" else self.target_of(device)
        self.rank = c.c_void_p(self.lib.dt_team_local(self.team, 0))
        self.check(self.lib.dt_stream_create(self.rank, b"corpus", c.byref(self.stream)))

    def check(self, status):
        if status:
            raise Refused(self.lib.dt_status_name(status).decode(),
                          (self.lib.dt_error(self.context) or b"").decode(errors="replace"))

    def target_of(self, device):
        """What a kernel is compiled for to run there."""
        self.lib.dt_device_info.restype = c.c_bool
        d, i = Device(), 0
        while self.lib.dt_device_info(self.context, c.c_size_t(i), c.byref(d)):
            if d.name.decode() == device:
                return d.target
            i += 1
        raise LookupError(f"there is no {device}")

    def compile(self, path, kernel, values, search=(), bound=None, num_warps=0, num_stages=0):
        """The image, the milliseconds of processor time it took, and by how many MiB the process grew at most."""
        args, o, image = named(values), self.options(search, bound, num_warps, num_stages), c.c_void_p()
        try:
            with open("/proc/self/clear_refs", "w") as f:
                f.write("5")  # the peak counts from here
        except OSError:
            pass
        before, start = memory_kib("VmRSS"), time.process_time()  # processor time: the compile is one thread
        status = self.lib.dt_compile_file(self.context, os.fsencode(path), kernel.encode(), args,
                                          c.c_size_t(len(values)), c.byref(o), c.byref(image))
        ms = (time.process_time() - start) * 1e3
        self.check(status)
        return image, ms, max(0, memory_kib("VmHWM") - before) / 1024

    def options(self, search, bound, num_warps, num_stages):
        folders = (c.c_char_p * (len(search) + 1))(*[s.encode() for s in search], None)
        return CompileOptions(size=c.sizeof(CompileOptions), target=self.target, num_warps=num_warps, num_stages=num_stages,
                              search_path=folders, globals=named(bound or {}), nglobals=len(bound or {}),
                              no_asserts=True)  # Triton's default

    def emit(self, stage, path, kernel, values, search=(), bound=None, num_warps=0, num_stages=0):
        """The text of a stage of what compile() compiles."""
        args, o, text = named(values), self.options(search, bound, num_warps, num_stages), c.c_char_p()
        self.check(self.lib.dt_emit_file(self.context, os.fsencode(path), kernel.encode(), args, c.c_size_t(len(values)),
                                         c.byref(o), stage.encode(), c.byref(text)))
        return text.value.decode(errors="replace")

    @contextlib.contextmanager
    def copies(self, blocks):
        """Blocks of host memory, {address: bytes}, copied to the device: {address: address there}, aligned alike. What was
        written there is copied back at the end, unless it ends in an error."""
        owned, there = [], {}
        try:
            for address, size in blocks.items():
                p = c.c_void_p()
                self.check(self.lib.dt_alloc(self.rank, c.c_size_t(size + ALIGNED), c.byref(p)))
                owned.append(p)
                there[address] = p.value + address % ALIGNED
                self.copy(there[address], address, size)
            self.check(self.lib.dt_stream_sync(self.stream))
            yield there
            for address, size in blocks.items():
                self.copy(address, there[address], size)
            self.check(self.lib.dt_stream_sync(self.stream))
        finally:
            for p in owned:
                self.lib.dt_free(self.rank, p)

    def copy(self, to, source, size):
        self.check(self.lib.dt_copy(self.stream, c.c_void_p(to), c.c_void_p(source), c.c_size_t(size)))

    def launch(self, image, grid, values):
        """Runs a compiled kernel with these arguments by name, in place, to its end."""
        kernel, info = c.c_void_p(), KernelInfo()
        self.check(self.lib.dt_kernel_load(self.rank, image, None, c.byref(kernel)))
        try:
            self.check(self.lib.dt_kernel_query(kernel, c.byref(info)))
            names = [self.lib.dt_kernel_arg_name(kernel, c.c_size_t(i)).decode() for i in range(info.nargs)]
            args = (Value * max(len(names), 1))(*[value_of(values[n]) for n in names])
            g = (c.c_uint32 * 3)(*(tuple(grid) + (1, 1))[:3])
            self.check(self.lib.dt_launch(kernel, self.stream, g, args, c.c_size_t(len(names))))
            self.check(self.lib.dt_stream_sync(self.stream))
        finally:
            self.lib.dt_kernel_destroy(kernel)
            self.lib.dt_image_destroy(image)
