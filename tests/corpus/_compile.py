"""The compiler inside this process: libditron through ctypes, so that one process compiles thousands of kernels.

A signature is written as for `ditron compile --sig`: "x=*bf16:16, n=i32, BLOCK=128".
"""
import ctypes as C
import os
from pathlib import Path

from ditron import (BOOL, DTYPE, DTYPES, FLOAT, INT, NONE, PTR, STR, CompileOptions, ContextOptions, Named,  # noqa: F401
                    Value)

TL_DTYPES = dict(int1="i1", int8="i8", int16="i16", int32="i32", int64="i64", uint8="u8", uint16="u16", uint32="u32",
                 uint64="u64", float16="f16", bfloat16="bf16", float32="f32", float64="f64", float8e4nv="f8e4m3",
                 float8e5="f8e5m2")
OK, COMPILE, INTERNAL = 0, None, None  # the rest by name, from the library


def split_sig(text):
    """The NAME=WHAT entries: a comma separates outside of brackets and quotes."""
    out, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text + ","):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif c == "," and depth == 0:
            if text[start:i].strip():
                name, _, what = text[start:i].strip().partition("=")
                out.append((name.strip(), what.strip()))
            start = i + 1
    return out


def value_of(what):
    v = Value()
    if what.startswith("*"):
        d, _, div = what[1:].partition(":")
        v.kind, v.dtype, v.u.ptr = PTR, DTYPES.index(d), (0 if div and int(div) % 16 == 0 else 1)
        return v
    d, _, div = what.partition(":")
    if d in DTYPES:
        v.dtype = DTYPES.index(d)
        if d == "i1":
            v.kind, v.u.i = BOOL, 1
        elif d[0] in "bf":
            v.kind, v.u.f = FLOAT, 0.5
        else:
            v.kind, v.u.i = INT, 3 * int(div or 1) + ((1 << 40) if d == "i64" else 0)
            if d == "u64":
                v.u.i |= -(1 << 63)
    elif what == "None":
        v.kind = NONE
    elif what in ("True", "False"):
        v.kind, v.u.i = BOOL, what == "True"
    elif what[0] in "\"'":
        v.kind, v.u.str = STR, what[1:-1].encode()
    elif what.startswith("tl."):
        v.kind, v.dtype = DTYPE, DTYPES.index(TL_DTYPES[what[3:]])
    else:
        try:
            v.kind, v.u.i = INT, int(what, 0)
            v.dtype = DTYPES.index("i32" if -(1 << 31) <= v.u.i < 1 << 31 else "i64")
        except ValueError:
            try:
                v.kind, v.dtype, v.u.f = FLOAT, DTYPES.index("f32"), float(what)
            except ValueError:
                v.kind, v.u.str = FUNC, what.encode()
    return v


class Compiler:
    """compile(...) -> (status name, message); "OK" and "" where an image came out."""

    def __init__(self, build, search=(), bound=()):
        """bound: globals of the file, as entries of a signature."""
        self.bound, self.nbound = self.arguments(bound), len(bound)
        self.lib = C.CDLL(str(Path(build).resolve() / "libditron.so"))
        self.rt = C.CDLL(str(Path(build).resolve() / "libditron-rt.so"))
        for fn in ("dt_status_name", "dt_error", "dt_remarks"):
            getattr(self.rt, fn).restype = C.c_char_p
        self.rt.dt_error.argtypes = self.rt.dt_remarks.argtypes = [C.c_void_p]
        self.rt.dt_image_destroy.argtypes = [C.c_void_p]
        self.lib.dt_compile_text.argtypes = [C.c_void_p, C.c_char_p, C.c_char_p, C.c_size_t, C.c_char_p, C.c_void_p,
                                             C.c_size_t, C.c_void_p, C.c_void_p]
        self.lib.dt_emit_file.argtypes = [C.c_void_p, C.c_char_p, C.c_char_p, C.c_void_p, C.c_size_t, C.c_void_p,
                                          C.c_char_p, C.c_void_p]
        o = ContextOptions(size=C.sizeof(ContextOptions), cache_dir=b"")
        self.context = C.c_void_p()
        if self.rt.dt_context_create(C.byref(o), C.byref(self.context)) != 0:
            raise RuntimeError("no context")
        paths = [os.fsencode(str(s)) for s in search] + [None]
        self.paths = (C.c_char_p * len(paths))(*paths)

    def options(self, target):
        return CompileOptions(size=C.sizeof(CompileOptions), target=target.encode() if target else None,
                              search_path=C.cast(self.paths, C.POINTER(C.c_char_p)), globals=C.cast(self.bound, C.POINTER(Named)),
                              nglobals=self.nbound)

    def arguments(self, sig):
        return (Named * max(1, len(sig)))(*[Named(name.encode(), value_of(what)) for name, what in sig])

    def result(self, status):
        name = self.rt.dt_status_name(status).decode()
        text = "" if status == 0 else self.rt.dt_error(self.context).decode(errors="replace")
        self.rt.dt_remarks(self.context)
        return name, text

    def compile(self, path, text, kernel, sig, target="x86-64"):
        """The whole way to machine code. text stands for the contents of the file at path."""
        args, o, image = self.arguments(sig), self.options(target), C.c_void_p()
        data = text.encode("utf-8", "surrogateescape")
        status = self.lib.dt_compile_text(self.context, os.fsencode(str(path)), data, len(data), kernel.encode(), args,
                                          len(sig), C.byref(o), C.byref(image))
        if status == 0:
            self.rt.dt_image_destroy(image)
        return self.result(status)

    def emit(self, path, kernel, sig, stage="tile", target="x86-64"):
        """A stage as text -> (status name, message, text)."""
        args, o, out = self.arguments(sig), self.options(target), C.c_char_p()
        status = self.lib.dt_emit_file(self.context, os.fsencode(str(path)), kernel.encode(), args, len(sig),
                                       C.byref(o), stage.encode(), C.byref(out))
        text = out.value.decode() if status == 0 and out.value else ""
        return (*self.result(status), text)
