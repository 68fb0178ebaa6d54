#!/usr/bin/env python3
"""Has the front end read every jit function of the installed kernel packages, and counts what it refuses and why.

    tests/corpus/sweep.py [--build DIR] [--jobs N] [--only TEXT] [--packages A,B] [--sample N] [--most PERCENT] [--triton] [--docs] ...

A function counts as read when it lowers to tile IR that the reader and verifier of the IR accept, for arguments that
sweep_guess.py thinks plausible. Where the first guess is refused, the parameters near the error are varied, within
a fixed number of tries. A refused function that a function which was read has called with arguments of its own is read, too.
Every try runs in a worker process under a limit of time and memory, so that a crash or a hang costs one function and
is counted. --triton asks Triton about what is refused: see sweep_triton.py. On two cores all of it takes half an hour.
"""
import argparse
import ast
import collections
import ctypes
import gc
import json
import multiprocessing
import multiprocessing.connection
import os
import re
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import sweep_guess as guess  # noqa: E402
from _compile import BOOL, DTYPE, DTYPES, FLOAT, INT, NONE, PTR, STR, Compiler, Named, Value  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build/deps/corpus/lib/python3.11/site-packages"
SITE = SITE if SITE.is_dir() else ROOT / "build/deps/kernels"  # what scripts/setup fetches: fewer packages
SOURCES = ROOT / "build/deps/corpus-src"
PACKAGES = ("liger_kernel", "fla", "flag_gems", "unsloth", "triton", "vllm")
TRIES, HANG_SECONDS, SLOW_SECONDS, MEMORY = 48, 30, 1.0, 4 << 30

LANGUAGE = {"i1": "int1", "f8e4m3": "float8e4nv", "f8e5m2": "float8e5", "bf16": "bfloat16"} | {
    f"{a}{n}": f"{b}{n}" for a, b in (("i", "int"), ("u", "uint"), ("f", "float")) for n in (8, 16, 32, 64)}


# ---- the library ---------------------------------------------------------------------------------------------------
class Library(Compiler):
    def __init__(self, build, search):
        super().__init__(build, search)
        self.lib.dt_opt_text.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p,
                                         ctypes.c_void_p]

    def lower(self, path, kernel, args):
        """(error text or None, IR text or None, seconds of processor time)"""
        named = (Named * (len(args) + 1))(*[Named(name.encode(), value) for name, value in args])
        options, out = self.options(None), ctypes.c_char_p()
        start = time.thread_time()
        status = self.lib.dt_emit_file(self.context, os.fsencode(str(path)), kernel.encode(), named, len(args),
                                       ctypes.byref(options), b"tile", ctypes.byref(out))
        seconds = time.thread_time() - start
        if status:
            return self.result(status)[1], None, seconds
        text = out.value
        status = self.lib.dt_opt_text(self.context, b"tile IR", text, len(text), b"", ctypes.byref(out))
        if status:
            return "error: IR: " + self.result(status)[1], None, seconds
        self.result(status)
        return None, text.decode(errors="replace"), seconds


def number(d, value):
    kind = BOOL if d == "i1" else FLOAT if DTYPES.index(d) >= DTYPES.index("f16") else INT
    v = Value(kind=kind, dtype=DTYPES.index(d))
    if kind == FLOAT:
        v.u.f = value
    else:
        v.u.i = value | (1 << 40 if d == "i64" else -(1 << 63) if d == "u64" else 0)
    return v


def plain(arg):
    """The C value of an argument that a kernel can take as it is; None for tiles, tuples and the like."""
    kind, x = arg[0], arg[1]
    if kind == "ptr":
        return Value(kind=PTR, dtype=DTYPES.index(x))
    if kind == "scalar":
        return number(x, 0.5 if x[0] in "fb" else 1 if x == "i1" else 7)
    if kind == "dtype":
        return Value(kind=DTYPE, dtype=DTYPES.index(x))
    if kind != "const" or isinstance(x, (tuple, bytes, complex)) or x is Ellipsis:
        return None
    if x is None:
        return Value(kind=NONE)
    if isinstance(x, bool):
        return number("i1", int(x))
    if isinstance(x, int):
        v = Value(kind=INT, dtype=DTYPES.index("i32" if -(1 << 31) <= x < 1 << 31 else "i64"))
        v.u.i = x
        return v if -(1 << 63) <= x < 1 << 63 else None
    if isinstance(x, float):
        return number("f32", x)
    v = Value(kind=STR)
    v.u.str = x.encode()
    return v


# ---- one try -----------------------------------------------------------------------------------------------------------
class Wrapper:
    """A kernel that makes arguments of any kind and calls the function with them."""

    def __init__(self, f):
        self.f, self.params, self.args, self.types, self.helpers = f, [], [], [], []

    def param(self, d, pointer):
        name = f"a{len(self.params)}"
        self.params.append(name)
        self.args.append((name, plain(("ptr" if pointer else "scalar", d))))
        self.types.append("*" + d if pointer else d)
        return name

    def spread(self, shape):
        terms = []
        for axis, n in enumerate(shape):
            index = ", ".join(":" if i == axis else "None" for i in range(len(shape)))
            terms.append(f"tl.arange(0, {n})" + (f"[{index}]" if len(shape) > 1 else ""))
        return " + ".join(terms)

    def value(self, arg):
        kind, x = arg[0], arg[1]
        if kind == "ptr":
            return self.param(x, True)
        if kind == "scalar":
            return self.param(x, False)
        if kind == "const":
            return repr(x)
        if kind == "dtype":
            return f"tl.{LANGUAGE[x]}"
        if kind == "tile":
            zeros = f"tl.zeros({list(arg[2])}, tl.{LANGUAGE['i32' if x == 'i1' else x]})"
            return f"({zeros} == 0)" if x == "i1" else zeros
        if kind == "ptile":
            return f"{self.param(x, True)} + {self.spread(arg[2])}"
        if kind == "tuple":
            return "(" + "".join(self.value(i) + ", " for i in x) + ")"
        if kind == "func":
            names = [f"x{i}" for i in range(x)]
            self.helpers.append(f"@triton.jit\ndef helper{len(self.helpers)}({', '.join(names)}):\n    return {names[0] if x else 0}\n")
            return f"helper{len(self.helpers) - 1}"
        base, size, ones = self.param(x, True), self.param("i32", False), [16] * (arg[2] - 1)
        dims, strides = [size] * arg[2], [size] * (arg[2] - 1) + ["1"]
        block = [32, 32] if arg[2] == 2 else [32] if arg[2] == 1 else [1] * (arg[2] - 2) + [32, 32]
        text = lambda items: "[" + ", ".join(map(str, items)) + "]"  # noqa: E731
        if kind == "desc":
            return f"tl.make_tensor_descriptor({base}, {text(dims)}, {text(strides)}, {text(block)})"
        return (f"tl.make_block_ptr({base}, {text(dims)}, {text(strides)}, {text([0] * arg[2])}, {text(block)}, "
                f"{text(range(arg[2] - 1, -1, -1))})") if ones is not None else ""

    def source(self):
        """The function itself, where an import does not reach it."""
        if not self.f.nested and not self.f.hidden:
            return ""
        lines = self.f.text.splitlines()[self.f.line - 1:self.f.node.end_lineno]
        cut = len(lines[0]) - len(lines[0].lstrip())
        return "@triton.jit\n" + "\n".join(s[cut:] for s in lines) + "\n"

    def entry(self, assignment, target):
        given = [f"{p}={self.value(a)}" for p, a in assignment.items()]
        if self.f.star:
            given = [g.split("=", 1)[1] for g in given] + [self.param("f32", False)]
        return ("\n".join(self.helpers) +
                f"\n@triton.jit\ndef sweep_entry({', '.join(self.params)}):\n    {target}({', '.join(given)})\n")

    def text(self, assignment, inside=False):
        """inside: behind the function's own file, in place of an import of it."""
        f, source = self.f, self.source()
        entry = self.entry(assignment, f.name if inside or source else "sweep_target")
        head = "" if inside else f"from {f.module} import *\n\n{source}" if source else f"from {f.module} import {f.name} as sweep_target\n"
        return (f.text if inside else "") + f"\nimport triton\nimport triton.language as tl\n{head}\n{entry}"


def attempt(lib, f, assignment, folder):
    args = [(p, plain(a)) for p, a in assignment.items()]
    if not (f.nested or f.hidden or f.star or guess.returns_value(f)) and all(v is not None for _, v in args):
        return lib.lower(f.path, f.name, args)
    w = Wrapper(f)
    inside = f.module.split(".")[0] == "triton"  # an import from there means the compiler's own functions
    path = Path(folder, *f.module.split(".")[:-1], "wrapper.py") if inside else Path(folder, "wrapper.py")
    if not path.parent.exists():
        path.parent.mkdir(parents=True)
        for above in [path.parent, *path.parent.parents]:
            if above == Path(folder):
                break
            (above / "__init__.py").touch()
    path.write_text(w.text(assignment, inside))
    error, ir, seconds = lib.lower(path, "sweep_entry", w.args)
    return error and (error.replace(str(path), f.path) if inside else error), ir, seconds


ERROR = re.compile(r"^(?:(?P<path>[^\n:]+):(?P<line>\d+):\d+: )?error: (?P<text>.*)$", re.M)


def read_errors(text):
    """[(file, line, message)] of a diagnostic text."""
    found = [(m["path"] or "", int(m["line"] or 0), m["text"]) for m in ERROR.finditer(text)]
    return found or [("", 0, text.strip().splitlines()[0] if text.strip() else "no message")]


# ---- one function ------------------------------------------------------------------------------------------------------------
def search(lib, f, folder, beat, functions):
    options = guess.guesses(f)
    choice = {p: o[0] for p, o in options.items()}
    state, tried = {"tries": 0, "slowest": 0.0}, []

    def run(c):
        beat(c)
        state["tries"] += 1
        tried.append(c)
        error, ir, seconds = attempt(lib, f, c, folder)
        state["slowest"] = max(state["slowest"], seconds)
        if not error:
            return None, ir
        errors = read_errors(error)
        site = guess.site_in(f, errors[0][0], errors[0][1], functions)
        return (errors, (-site, len(errors)), site), None  # a later first error, then fewer

    def read(c, ir):
        return {"result": "read", "args": shown(c), "calls": sorted(set(re.findall(r"func @([\w.]*?)\.\d+\(", ir))), **state}

    def vary(best_choice, best):
        while state["tries"] < TRIES:
            near = guess.parameters_near(f, best[2]) if best[2] else []
            near += [p for p in f.params if p not in near]
            better = None
            for depth in range(24):  # the second guess of each parameter, then the third of each
                for p in near[:12] if depth > 3 else near:
                    if better or depth >= len(options[p]) or guess.same(options[p][depth], best_choice[p]) or state["tries"] >= TRIES:
                        continue
                    c = best_choice | {p: options[p][depth]}
                    bad, ir = run(c)
                    if bad is None:
                        return c, ir, None
                    if bad[1] < best[1]:
                        better = (c, bad)
            if not better:
                break
            best_choice, best = better
        return best_choice, None, best

    first, ir = run(choice)
    if first is None:
        return read(choice, ir)
    off = {p: ("const", False) if a == ("const", True) and isinstance(a[1], bool) else a for p, a in choice.items()}
    starts = [(choice, first)]
    if off != choice:
        second, ir = run(off)
        if second is None:
            return read(off, ir)
        starts.append((off, second))
    starts.sort(key=lambda s: s[1][1])
    final = None
    for c, bad in starts:
        c, ir, best = vary(c, bad)
        if best is None:
            return read(c, ir)
        if final is None or best[1] < final[1][1]:
            final = (c, best)
    path, line, text = final[1][0][0]
    return {"result": "refused", "args": shown(final[0]), "at": f"{relative(f, path)}:{line}", "why": text,
            "all": [e[2] for e in final[1][0][:6]], "tried": [shown(c) for c in [final[0], *tried]], **state}


def shown(c):
    return {p: repr(a) for p, a in c.items()}


def relative(f, path):
    return os.path.relpath(path, f.root) if path.startswith(str(f.root)) else os.path.basename(path)


# ---- workers --------------------------------------------------------------------------------------------------------------------
def worker(build, functions, tasks, pipe):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lib = Library(build, sorted({f.root for f in functions}))
    folder = tempfile.mkdtemp(prefix="sweep-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    try:
        for i in tasks:
            result = search(lib, functions[i], folder, lambda c, i=i: pipe.send((i, shown(c))), functions)
            pipe.send((i, result))
        pipe.send(None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Crew:
    """Runs the functions in worker processes; a worker that dies or stalls is replaced."""

    def __init__(self, build, functions, jobs, results, log=None):
        self.build, self.functions, self.results, self.log = build, functions, results, log
        self.fork = multiprocessing.get_context("fork")
        order = [i for i in range(len(functions)) if i not in results]
        pieces = jobs * 4  # each worker starts with a copy of this process: few
        self.todo = [order[k::pieces] for k in range(pieces)]
        self.todo = [t for t in self.todo if t]
        self.slots = [None] * jobs
        self.said, self.verbose = 0.0, "SWEEP_VERBOSE" in os.environ

    def start(self, tasks):
        ours, theirs = self.fork.Pipe()
        p = self.fork.Process(target=worker, args=(self.build, self.functions, tasks, theirs), daemon=True)
        p.start()
        theirs.close()
        return {"p": p, "pipe": ours, "tasks": tasks, "now": None, "since": time.monotonic(), "args": {}}

    def run(self):
        while self.todo or any(self.slots):
            for k, s in enumerate(self.slots):
                if s is None and self.todo:
                    self.slots[k] = self.start(self.todo.pop(0))
            live = [s["pipe"] for s in self.slots if s]
            multiprocessing.connection.wait(live, timeout=1)
            for k, s in enumerate(self.slots):
                if s:
                    self.slots[k] = self.serve(s)
            if sys.stderr.isatty() or self.verbose and time.monotonic() > self.said + 20:
                self.said = time.monotonic()
                print(f"\r{len(self.results)} of {len(self.functions)}", end="", file=sys.stderr, flush=True)
        return self.results

    def serve(self, s):
        try:
            while s["pipe"].poll():
                message = s["pipe"].recv()
                s["since"] = time.monotonic()
                if message is None:
                    s["p"].join()
                    return None
                s["now"], what = message
                if "result" in what:
                    self.results[s["now"]] = what
                    self.note(s["now"])
                    s["now"] = None
                else:
                    s["args"] = what
        except EOFError:
            s["p"].join()
            code = s["p"].exitcode
            return self.lost(s, f"crashed: the process ended with {f'signal {-code}' if code and code < 0 else f'status {code}'}")
        if time.monotonic() - s["since"] > HANG_SECONDS:
            s["p"].kill()
            s["p"].join()
            return self.lost(s, f"stalled: no end after {HANG_SECONDS} s")
        return s

    def note(self, i):
        if self.log:
            print(json.dumps({"function": self.functions[i].key(), **self.results[i]}), file=self.log, flush=True)

    def lost(self, s, why):
        done = s["now"] if s["now"] is not None else next((i for i in s["tasks"] if i not in self.results), None)
        if done is not None:
            self.results[done] = {"result": why.split(":")[0], "why": why, "args": s["args"], "tries": 0, "slowest": 0.0}
            self.note(done)
        rest = [i for i in s["tasks"] if i not in self.results]
        if rest:
            self.todo.insert(0, rest)
        return None


# ---- what Triton says ---------------------------------------------------------------------------------------------------------------
def ask_triton(functions, results, jobs):
    """Of each refused function, whether Triton takes any of the arguments that were tried."""
    import sweep_triton
    modules = collections.defaultdict(list)
    for i, r in results.items():
        if r["result"] != "refused":
            continue
        f, wrappers = functions[i], []
        for args in unique(r["tried"]):
            w = Wrapper(f)
            text = w.entry({p: ast.literal_eval(a) for p, a in args.items()}, f.name if w.source() else "sweep_target")
            wrappers.append({"text": f"import triton\nimport triton.language as tl\n{text}", "params": list(zip(w.params, w.types)), "shown": args})
        modules[str(f.root), f.module].append({"i": i, "name": f.name, "source": Wrapper(f).source(), "wrappers": wrappers})
    for i, answer in sweep_triton.ask([(root, module, items) for (root, module), items in modules.items()], jobs):
        results[i] |= answer


def unique(items):
    return list({json.dumps(x): x for x in items}.values())


# ---- the report ---------------------------------------------------------------------------------------------------------------------
def reason(text):
    """The wording of a refusal without the names, types and numbers of the case at hand."""
    text = re.sub(r"'[^']*'", "'...'", text)
    text = re.sub(r"\b(?:\*?(?:u?int|fp|bf|f|i|u)\d+\w*)(?:\[[\d, ]*\])?", "T", text)
    text = re.sub(r"\[[\d, ]+\]", "[N]", text)
    return re.sub(r"-?\b\d+(\.\d+)?\b", "N", text)


def read_through_callers(functions, results):
    """A helper counts as read where a function that was read has called it: it is in that one's IR."""
    by_name = collections.defaultdict(list)
    for i, f in enumerate(functions):
        by_name[f.name].append(i)
    called = set()
    for i, r in results.items():
        for name in r.get("calls", ()):
            near = [j for j in by_name[name] if functions[j].path == functions[i].path]
            far = [j for j in by_name[name] if imported(functions[i], functions[j])]
            called.update(near or far)
    n = 0
    for j in called:
        if results[j]["result"] == "refused":
            results[j] |= {"result": "read", "through": True}
            n += 1
    return n


def imported(f, g):
    for n in f.imports:
        if any(a.name == g.name for a in n.names) and \
                (n.module or "").split(".")[-1] == g.module.split(".")[-1]:
            return True
    return False


def version(package):
    for base in (SITE, SOURCES):
        for d in sorted(base.glob("*-*.dist-info")) + sorted(base.glob("*/PKG-INFO")):
            text = (d / "METADATA" if d.is_dir() else d)
            name = d.name.split("-")[0].lower() if d.is_dir() else ""
            if name in (package, {"fla": "fla_core"}.get(package)):
                return re.search(r"^Version: (.*)$", text.read_text(errors="replace"), re.M)[1]
    source = SOURCES / package / "_version.py"  # sources without metadata
    found = re.search(r"^__version__ = .*?[\"']([\w.+-]+)[\"']", source.read_text(), re.M) if source.is_file() else None
    return found[1] if found else "?"


def group(functions, results):
    """(per package, per reason) of what happened, and of the packages how often Triton refuses, too; reasons the most frequent first."""
    packages, both, reasons = collections.OrderedDict(), collections.Counter(), collections.defaultdict(list)
    for i, f in enumerate(functions):
        package = os.path.relpath(f.path, f.root).split(os.sep)[0]
        packages.setdefault(package, collections.Counter())[results[i]["result"]] += 1
        if results[i]["result"] == "refused":
            reasons[reason(results[i]["why"])].append(i)
            for name in (package, "all"):
                both[name] += results[i].get("triton") == "refuses"
    packages["all"] = sum(packages.values(), collections.Counter())
    return packages, both, sorted(reasons.items(), key=lambda x: (-len(x[1]), x[0]))


OUTCOMES = ("read", "refused", "crashed", "stalled")


def verdicts(results):
    return collections.Counter(r["triton"] for r in results.values() if "triton" in r)


def report(functions, results):
    packages, both, reasons = group(functions, results)
    asked = verdicts(results)
    print(f"{'package':<16}{'functions':>10}" + "".join(f"{o:>9}" for o in OUTCOMES) + ("  of the refused, by Triton too" if asked else ""))
    for package, c in packages.items():
        print(f"{package:<16}{c.total():>10}" + "".join(f"{c[o]:>9}" for o in OUTCOMES) + (f"{both[package]:>9}" if asked else ""))
    slow = sorted(((r["slowest"], functions[i].key()) for i, r in results.items()), reverse=True)
    total = packages["all"]
    print(f"refused: {100 * total['refused'] / max(total.total(), 1):.1f} %   over {SLOW_SECONDS:.0f} s: "
          f"{sum(s > SLOW_SECONDS for s, _ in slow)}   slowest: " + ", ".join(f"{s * 1e3:.0f} ms {k}" for s, k in slow[:3]))
    if asked:
        print("Triton on the refused: " + ", ".join(f"{n} {what}" for what, n in asked.most_common()))
    for why, which in reasons:
        print(f"{len(which):>6}  {why}    e.g. {functions[which[0]].key()}")
    return total


def write_docs(functions, results):
    """The section of docs/language.md between the marks of the sweep."""
    packages, both, reasons = group(functions, results)
    total, asked, slowest = packages["all"], verdicts(results), max(r["slowest"] for r in results.values())
    first_try = sum(r["result"] == "read" and r["tries"] == 1 for r in results.values())
    lines = ["", f"Every function decorated with `triton.jit` in these packages, {time.strftime('%Y-%m-%d')}, `make sweep`: the front "
             "end lowers it, for argument types guessed from the body and from names, to tile IR that the verifier accepts. "
             f"{first_try} of {total.total()} are read with the first guess. The slowest takes {slowest * 1e3:.0f} ms of processor time.",
             "", "| package | functions | read | refused | of these by Triton too | crashed | no end |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for package, c in packages.items():
        name = "all" if package == "all" else f"{package} {version(package)}"
        lines.append(f"| {name} | {c.total()} | {c['read']} | {c['refused']} | {both[package] if asked else '?'} | {c['crashed']} | {c['stalled']} |")
    percent = lambda n: f"{100 * n / max(total.total(), 1):.1f} %"  # noqa: E731
    lines += ["", f"Refused: {percent(total['refused'])}, by what the first diagnostic says. Where no guess "
              "of the arguments fits, the last one's diagnostic counts, so some of these are wrong guesses."]
    if asked:
        lines += [f"Triton {version('triton')} was asked to trace each refused function for a CUDA target, with all the arguments that "
                  f"were tried: it refuses {asked['refuses']} of them with any, so {percent(total['refused'] - asked['refuses'])} are refused "
                  f"here and not known to be refused there. {asked['compiles']} it takes with some; {asked['unknown']} could not be brought "
                  "to it, as their modules ask for other hardware or packages."]
    lines += ["", "| functions | by Triton too | diagnostic | for example |", "| --- | --- | --- | --- |"]
    rare = [i for _, which in reasons if len(which) < 3 for i in which]
    refused_too = lambda which: sum(results[i].get("triton") == "refuses" for i in which) if asked else "?"  # noqa: E731
    for why, which in reasons:
        if len(which) >= 3:
            lines.append(f"| {len(which)} | {refused_too(which)} | {why} | `{functions[which[0]].name}` of "
                         f"{functions[which[0]].module} |".replace("*", "\\*"))
    if rare:
        lines.append(f"| {len(rare)} | {refused_too(rare)} | other texts, each of fewer than 3 functions | |")
    path = ROOT / "docs/language.md"
    old = path.read_text()
    new, n = re.subn(r"(<!-- sweep -->\n).*?(<!-- end of sweep -->)", lambda m: m[1] + "\n".join(lines) + "\n\n" + m[2], old, flags=re.S)
    if not n:
        sys.exit("sweep: docs/language.md has no marks <!-- sweep --> and <!-- end of sweep -->")
    path.write_text(new)


def main():
    o = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    o.add_argument("--build", default=str(ROOT / "build"))
    o.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    o.add_argument("--only", default="", help="functions whose FILE:LINE:NAME contains this")
    o.add_argument("--site", type=Path, default=SITE, help="folder of the packages")
    o.add_argument("--packages", default=",".join(PACKAGES))
    o.add_argument("--sample", type=int, default=1, help="every Nth function")
    o.add_argument("--json", help="write the result of each function here, one a line")
    o.add_argument("--again", help="what was read according to this file of --json is not read again, but counted")
    o.add_argument("--triton", action="store_true", help="ask Triton about what is refused")
    o.add_argument("--results", help="read nothing: what this file of --json says is what counts")
    o.add_argument("--docs", action="store_true", help="renew the section of docs/language.md")
    o.add_argument("--most", type=float, default=100.0, help="fail where more than this share of functions, in percent, is refused")
    o.add_argument("--show", action="store_true", help="list what was not read, with the arguments tried last")
    o = o.parse_args()
    gc.disable()  # syntax trees are many small objects that stay
    functions = []
    for package in o.packages.split(","):
        for root in (o.site, SOURCES, SOURCES / package):
            if (root / package).is_dir():
                functions += guess.jit_functions(str(root), package)
                break
    if not functions:
        print("sweep: no packages below", SITE)
        return 77
    guess.learn(functions)
    functions = [f for f in functions if o.only in f.key()][::o.sample]
    results = {}
    if o.again or o.results:
        known = {r["function"]: r for r in map(json.loads, Path(o.again or o.results).read_text().splitlines())
                 if r["result"] == "read" or o.results}
        functions = [f for f in functions if f.key() in known] if o.results else functions
        results = {i: known[f.key()] for i, f in enumerate(functions) if f.key() in known}
    log = open(o.json, "w") if o.json else None
    results = Crew(o.build, functions, o.jobs, results, log).run()
    through = read_through_callers(functions, results)
    if o.triton:
        ask_triton(functions, results, o.jobs)
    total = report(functions, results)
    if o.docs:
        write_docs(functions, results)
    print(f"read through callers only: {through}")
    if o.show:
        for i, r in sorted(results.items()):
            if r["result"] != "read":
                print(functions[i].key(), r.get("at", ""), r["why"], f"({r['tries']} tries)", r["args"])
                if "triton" in r:
                    print("    Triton", r["triton"], r["triton_says"])
    slow = any(r["slowest"] > SLOW_SECONDS for r in results.values())
    return 1 if total["crashed"] or total["stalled"] or slow or 100 * total["refused"] > o.most * total.total() else 0


if __name__ == "__main__":
    sys.exit(main())
