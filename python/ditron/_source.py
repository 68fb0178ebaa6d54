"""Where a kernel's text lies, and what the compiler must know beside it: values of globals, folders of imported modules.

A function with @jit at the top of a file is compiled from that file. Anything else (a function inside a function, a notebook's
cell, one that is given to jit later) is compiled from a text made here: its own lines and those of the functions that it uses,
each at its place in the file so that messages name the right line, behind one line of imports.
"""
import dis
import functools
import inspect
import linecache
import os
import re
import sys
import types

from . import _values

NOT_SEARCHED = {"triton", "triton_dist", "torch", "numpy", "ditron", "math", "builtins", "__main__"}


LIBDEVICE = re.compile(r"triton\.language\.extra\.(\w+\.)?libdevice")
JIT = re.compile(r"^\s*@\s*(\w+\.)*jit\b", re.M)  # the decorator by which the compiler knows a kernel


def function_of(o):
    """The Python function in a jit function, ours or Triton's, or in anything that wraps one; None for what is none."""
    for _ in range(8):
        if inspect.isfunction(o):
            return o
        o = getattr(o, "fn", None)
    return None


def is_jit(o):
    return not inspect.isfunction(o) and not isinstance(o, type) and function_of(o) is not None


def codes(code):
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from codes(c)


def names_of(fn):
    """The outer names that a function reads."""
    found = {}
    for code in codes(fn.__code__):
        for i in dis.get_instructions(code):
            if i.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_CLOSURE"):
                found[i.argval] = None
    return list(found)


def outer(fn):
    """name -> (value, where it may change or None) for the outer names that a function reads."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))
    out = {}
    for name in names_of(fn):
        if name in cells:
            try:
                out[name] = cells[name].cell_contents, None
            except ValueError:
                pass
        elif name in fn.__globals__:
            out[name] = fn.__globals__[name], fn.__globals__
    return out


def reached_from(fn):
    """fn, and the jit functions and those of its own file that it uses, directly or not, each with its outer names; and which of them
    are jit functions."""
    found, jits, todo = {}, {fn}, [fn]
    while todo:
        f = todo.pop()
        if f in found:
            continue
        found[f] = outer(f)
        for value, _ in found[f].values():
            g = function_of(value)
            if is_jit(value):
                jits.add(g)
            if is_jit(value) or (g is not None and g.__code__.co_filename == fn.__code__.co_filename):
                todo.append(g)
    return found, jits


@functools.lru_cache(maxsize=256)
def names_in(path, functions=False):
    """The names that a module's own text gives a meaning: defined, assigned or imported in it, at any depth. functions: only those."""
    import ast
    try:
        with open(path, encoding="utf-8") as f:
            tree = ast.parse(f.read())
    except (OSError, TypeError, ValueError, SyntaxError):
        return frozenset()
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif functions:
            continue
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((a.asname or a.name).partition(".")[0] for a in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def root_of(module):
    """The folder from which a module is imported."""
    path = getattr(module, "__file__", None)
    if not path or not path.endswith(".py"):
        return None
    folder = os.path.dirname(os.path.abspath(path))
    for _ in range(module.__name__.count(".") + (os.path.basename(path) == "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


def at_top_of_file(fn):
    """The file in which the compiler finds fn by its name, or None."""
    path = inspect.getsourcefile(fn)
    if fn.__qualname__ != fn.__name__ or not path or not os.path.isfile(path):
        return None
    lines, start = inspect.findsource(fn)
    if not JIT.search("".join(inspect.getblock(lines[start:])).partition("def ")[0]):
        return None
    module = sys.modules.get(fn.__module__)
    there = function_of(getattr(module, fn.__name__, fn))
    return os.path.abspath(path) if there in (fn, None) else None


class Source:
    """What a request to compile says of a function. bound: name -> value in bytes. watched: what must not change."""

    def __init__(self, jit):
        self.fn, self.kernel = jit.fn, jit.fn.__name__
        self.functions, self.jits = reached_from(jit.fn)
        self.path, self.text = at_top_of_file(jit.fn), None
        self.bound, self.watched, roots = {}, [], []
        for f, names in self.functions.items():
            own = self.path is None or f.__globals__ is self.fn.__globals__
            for name, (value, where) in names.items():
                self.bind(name if own else f"{f.__module__}.{name}", name, value, where)
                if not own and f.__name__ in names_in(self.path, functions=True):  # a generated file has a copy of its text
                    self.bind(name, name, value, where)
            roots += [sys.modules.get(f.__module__)]
            roots += [v if isinstance(v, types.ModuleType) else sys.modules.get(getattr(v, "__module__", None) or "")
                      for v, _ in names.values() if isinstance(v, types.ModuleType) or function_of(v)]
        named = [m for m in roots if m and m.__name__.partition(".")[0] not in NOT_SEARCHED]
        self.search = list(dict.fromkeys(r for r in map(root_of, named) if r))
        if self.path is None:
            self.make_text(jit)

    def bind(self, bound, name, value, where):
        fn = function_of(value)
        if fn is not None and not self.decided_here(fn, name, where):
            return
        constant = _values.constant(value, self.name_of)
        if constant is not None:
            self.bound[bound] = constant
            if where is not None and fn is None:
                self.watched.append((where, name, value))

    def decided_here(self, fn, name, where):
        """Whether only this process knows which function a name means; else the compiler finds it as the file says."""
        if LIBDEVICE.fullmatch(fn.__module__ or ""):
            return True
        if self.path is None or where is None:
            return False
        if fn.__globals__ is where and fn.__name__ != name:  # fast = a if something() else b
            return function_of(where.get(fn.__name__)) is fn
        return name not in names_in(where.get("__file__"))

    def name_of(self, function):
        """How the compiler finds a function that is passed as a constant."""
        fn = function_of(function) or function
        same = fn.__globals__ is self.fn.__globals__ or (self.path is None and fn in self.functions)
        return fn.__name__ if same else f"{fn.__module__}.{fn.__name__}"

    # ---- functions that are not at the top of a file
    def make_text(self, jit):
        lines = {}
        imports = ["import ditron"]
        first = None
        for f, names in self.functions.items():
            path, block, start = self.block_of(f)
            first = first or path
            if path == first:
                self.place(lines, block, start, self.mark_of(f, jit))
            for name, (value, _) in names.items():
                self.add_import(imports, name, value, first)
        height = max(lines) + 1
        text = [lines.get(i, "") for i in range(height)]
        if text[0]:
            text.insert(0, "")
        text[0] = "; ".join(dict.fromkeys(imports))
        self.path, self.text = first, "\n".join(text) + "\n"

    @staticmethod
    def block_of(f):
        try:
            lines, start = inspect.findsource(f)
        except OSError:
            raise OSError(f"the source of {f.__qualname__} is not at hand: a kernel must be in a file or a cell") from None
        block = [line.rstrip("\n") for line in inspect.getblock(lines[start:])]
        return f.__code__.co_filename, block, start

    def mark_of(self, f, jit):
        if f not in self.jits:
            return ""
        skipped = list(jit.do_not_specialize) if f is self.fn else []
        return f"@ditron.jit(do_not_specialize={skipped!r})" if skipped else "@ditron.jit"

    @staticmethod
    def place(lines, block, start, mark):
        indent = len(block[0]) - len(block[0].lstrip())
        at = next(i for i, line in enumerate(block) if re.match(r"\s*(async\s+)?def\b", line))
        if at == 0:
            block, at, start = ["", *block], 1, start - 1
        if start < 0:
            raise OSError("a kernel cannot stand in the first line of its text without a decorator")
        for i, line in enumerate(block):
            if i >= at - 1:
                lines[start + i] = mark if i == at - 1 else line[indent:] if line[:indent].isspace() or not indent else line

    def add_import(self, imports, name, value, path):
        if isinstance(value, types.ModuleType):
            imports.append(f"import {value.__name__} as {name}")
        elif function_of(value) is not None:
            fn = function_of(value)
            if fn.__code__.co_filename != path or fn not in self.functions:
                imports.append(f"from {fn.__module__} import {fn.__name__} as {name}")
        elif name not in self.bound and getattr(value, "__module__", None) and getattr(value, "__name__", None):
            imports.append(f"from {value.__module__} import {value.__name__} as {name}")


def text_of(fn):
    """The lines of a function, for what depends on them: hashes."""
    try:
        lines, start = inspect.findsource(fn)
        return "".join(inspect.getblock(lines[start:]))
    except OSError:
        linecache.checkcache()
        return fn.__code__.co_code.hex()
