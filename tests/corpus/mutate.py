#!/usr/bin/env python3
"""Real kernels, damaged in a thousand ways: each is answered with machine code or a diagnostic, never with a crash, a hang, an
internal error or a message without a place.

    tests/corpus/mutate.py [--mutants 200] [--jobs N] [KERNEL ...]     kernels of mutants.txt whose line holds KERNEL
    tests/corpus/mutate.py --launches FILE ...                         kernels of that record
    tests/corpus/mutate.py --one 17:42 [--show]                        mutant 42 of kernel 17 alone, in this process

A kernel of mutants.txt is a file of the corpus environment, a function and a signature; --launches FILE takes those that the corpus
launched instead, with the arguments that it did (run.py --record FILE). Mutant M of kernel K is made from the numbers
K, M and the seed alone. Children compile many mutants each and say before each which one it is; the one at which a child dies or
stays silent is the culprit, and the next child goes on behind it. The memory of each compile is measured.
"""
import argparse
import ast
import io
import json
import os
import random
import re
import resource
import select
import subprocess
import sys
import time
import tokenize
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
SITE = ROOT / "build/deps/corpus/lib/python3.11/site-packages"
SITE = SITE if SITE.is_dir() else ROOT / "build/deps/kernels"  # what scripts/setup fetches: fewer packages
SOURCES = ROOT / "build/deps/corpus-src"
SKIP = 77
LIMIT_S = 10
LIMIT_MB = 500
BATCH = 200  # mutants of one child

# What a diagnostic looks like: a place, and a sentence. Words that are ours and not the reader's are bugs.
PLACE = re.compile(r"^\S.*?:\d+:\d+: error: \S.{4,}", re.M)
OURS = re.compile(r"internal error|\bverif(y|ier)\b|after pass|\bLLVM ERROR\b|assert(ion)? .*failed at .*\.c\b|\bplaced stage\b", re.I)
# Of Python's text: lines that end so, and annotations that index by a slice.
ON_PURPOSE = re.compile(r"carriage return|^ +\w+: *[\w.]+\[[^]\n]*:", re.M)
# Arguments that do not fit the parameters, and a kernel that is not there, have no line.
ARGUMENTS = ("INVALID", "NOT_FOUND")


class Kernel:
    def __init__(self, number, file, name, sig, bound="", text=None):
        self.number, self.name, self.sig, self.bound, self.text = number, name, sig, bound, text
        self.path = SITE / file
        self.file = str(file).replace(str(SITE.resolve()) + "/", "").replace(str(SOURCES.resolve()) + "/", "")

    def read(self):
        return self.text or self.path.read_text()

    def __str__(self):
        return f"{self.file} {self.name}"


def kernels(launches=None, filters=()):
    out = []
    if launches:
        seen = set()
        for line in sorted(Path(launches).read_text().splitlines()):
            x = json.loads(line)
            join = lambda d: ", ".join(f"{a}={b}" for a, b in d.items())  # noqa: E731
            if (x["kernel"], x.get("text") or x["file"]) not in seen:  # one of each
                seen.add((x["kernel"], x.get("text") or x["file"]))
                out.append(Kernel(len(out), x["file"], x["kernel"], join(x["sig"]), join(x["globals"]), x.get("text")))
    else:
        for line in (HERE / "mutants.txt").read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                out.append(Kernel(len(out), *line.split(None, 2)))
        out = [k for k in out if k.path.is_file()]
    return [k for k in out if not filters or any(f in f"{k} {k.sig}" for f in filters)]


# ---- mutations: each takes the lines of the file and the range of lines of one function ------------------------


class Source:
    """A file's text and the functions in it that are worth damaging."""

    def __init__(self, text, kernel):
        self.lines = text.splitlines(True)
        self.spans = {}
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef):
                continue
            if node.name == kernel or "jit" in " ".join(ast.unparse(d) for d in node.decorator_list):
                self.spans[node.name] = (node.lineno - 1, node.end_lineno)  # `f = triton.jit(f)` decorates, too
        first, last = self.spans[kernel]
        body = "".join(self.lines[first:last])
        self.used = [kernel] * 4 + [f for f in self.spans if f != kernel and re.search(rf"\b{f}\b", body)]
        self.pool = sorted(set(re.findall(r"\b[A-Za-z_]\w*\b", body)) - {"def", "if", "else", "for", "in", "return"})

    def tokens(self, span):
        """(line, column, end column, kind, text) of the tokens of those lines."""
        text = "".join(self.lines[span[0]:span[1]])
        out = []
        try:
            for t in tokenize.generate_tokens(io.StringIO(text).readline):
                if t.start[0] == t.end[0] and t.string.strip() and t.type != tokenize.COMMENT:
                    out.append((span[0] + t.start[0] - 1, t.start[1], t.end[1], t.type, t.string))
        except (tokenize.TokenError, IndentationError, SyntaxError):
            pass
        return out


def splice(lines, token, new):
    line, a, b = token[:3]
    out = list(lines)
    out[line] = out[line][:a] + new + out[line][b:]
    return out


OPERATORS = "+ - * / // % ** & | ^ << >> < <= > >= == != and or is in @ = += -= . , : ( ) [ ] not".split()
NUMBERS = ("0 1 -1 2 3 7 16 31 64 100 128 1000 4096 65536 1048576 2147483647 2147483648 4294967296 9223372036854775807 "
           "18446744073709551616 1e30 0.5 1.5 -0.0 1e-300 float('nan') float('inf') None True '' 'x' () (1,2) [] x tl.int8").split()
WORDS = ("tl.float16 tl.float64 tl.int8 tl.uint64 tl.int1 tl.float8e5 tl.arange(0,16) tl.zeros((4,4),tl.float32) tl.program_id(0) "
         "tl.load tl None lambda:0 [] {} range(4) ... *a **k tl.constexpr(3) x[0] x[:,None] x[0:2] x.T x.dtype x.shape tl.sum").split()
TYPES = ("*f32:16 *f16 *bf16:16 *i8 *i1 *u8 *i64 *u32 *f64 *f8e4m3 i32 i64 i1 f32 f64 u8 u64 f16 0 1 -1 3 7 16 100 1024 65536 1048577 "
         "4294967296 0.5 True None 'x' tl.float16 tl.int32 tl.float8e5").split()


def delete_token(r, s, lines, tokens):
    return splice(lines, r.choice(tokens), "")


def double_token(r, s, lines, tokens):
    t = r.choice(tokens)
    return splice(lines, t, t[4] + " " + t[4])


def swap_tokens(r, s, lines, tokens):
    if len(tokens) < 2:
        return None
    a, b = sorted(r.sample(tokens, 2))
    return splice(splice(lines, b, a[4]), a, b[4])


def swap_names(r, s, lines, tokens):
    names = [t for t in tokens if t[3] == tokenize.NAME and t[4] in s.pool]
    return splice(lines, r.choice(names), r.choice(s.pool)) if names else None


def change_number(r, s, lines, tokens):
    numbers = [t for t in tokens if t[3] in (tokenize.NUMBER, tokenize.STRING)]
    return splice(lines, r.choice(numbers), r.choice(NUMBERS)) if numbers else None


def change_operator(r, s, lines, tokens):
    ops = [t for t in tokens if t[3] == tokenize.OP or t[4] in ("and", "or", "not", "is", "in")]
    return splice(lines, r.choice(ops), " " + r.choice(OPERATORS) + " ") if ops else None


def name_to_word(r, s, lines, tokens):
    names = [t for t in tokens if t[3] == tokenize.NAME and t[4] in s.pool]
    if not names:
        return None
    t = r.choice(names)
    return splice(lines, t, r.choice(WORDS).replace("x", t[4], 1))


def change_library(r, s, lines, tokens):
    calls = [t for t in tokens if t[3] == tokenize.NAME and t[1] > 0 and lines[t[0]][t[1] - 1] == "."]
    known = ("load store sum max cumsum sort arange zeros full where dot trans reshape broadcast_to expand_dims exp sqrt cdiv "
             "atomic_add atomic_cas atomic_max join split cat flip gather histogram program_id to make_block_ptr advance reduce "
             "associative_scan rand static_range range constexpr multiple_of device_print device_assert static_assert clamp "
             "topk permute interleave softmax argmax xor_sum debug_barrier inline_asm_elementwise dot_scaled").split()
    return splice(lines, r.choice(calls), r.choice(known)) if calls else None


def drop_line(r, s, lines, tokens):
    out = list(lines)
    del out[r.choice(tokens)[0]]
    return out


def double_line(r, s, lines, tokens):
    k = r.choice(tokens)[0]
    return lines[:k] + [lines[k]] + lines[k:]


def move_line(r, s, lines, tokens):
    a, b = r.choice(tokens)[0], r.choice(tokens)[0]
    out = list(lines)
    line = out.pop(a)
    out.insert(b, line)
    return out


def indent(r, s, lines, tokens):
    k, out = r.choice(tokens)[0], list(lines)
    if r.random() < 0.5:
        out[k] = "    " + out[k]
    else:
        out[k] = out[k][4:] if out[k].startswith("    ") else "  " + out[k]
    return out


def indent_under(r, s, lines, tokens):
    """A line under control of its own: the same indentation, behind a condition or a loop."""
    k, out = r.choice(tokens)[0], list(lines)
    text = out[k].lstrip(" ")
    pad = out[k][:len(out[k]) - len(text)]
    head = r.choice(["if tl.program_id(0) > 0:", "for _k in range(tl.program_id(0)):", "while tl.program_id(0) < 0:", "if True:",
                     "for _k in tl.static_range(3):", "with tl:", "try:", "def inner():", "if None:", "else:"])
    out[k:k + 1] = [f"{pad}{head}\n", f"{pad}    {text}"]
    return out


def insert_line(r, s, lines, tokens):
    k, out = r.choice(tokens)[0], list(lines)
    text = out[k].lstrip(" ")
    pad = out[k][:len(out[k]) - len(text)]
    name = r.choice(s.pool)
    line = r.choice(["return", "return {n}", "break", "continue", "{n} = 0", "{n} = {n} + 1", "{n} += 1.5", "{n} = None", "{n} = tl.zeros((16,), tl.float32)",
                     "{n} = ({n}, {n})", "del {n}", "global {n}", "{n}: tl.constexpr = 4", "pass", "tl.debug_barrier()", "{n}[0] = 1",
                     "{n}.x = 1", "assert {n}", "raise {n}", "import {n}", "print({n})", "tl.static_assert({n})", "tl.device_print('{n}', {n})",
                     "{n} = {n}[None, :]", "{n} = {n}[:, None]", "{n} = tl.sum({n})", "{n}, {m} = {m}, {n}", "{n} = {n}.to(tl.int8)",
                     "{n} = tl.reshape({n}, (4, 4))", "{n} = tl.load({n})", "tl.store({n}, {m})", "{n} = lambda {m}: {n}"])
    out.insert(k, pad + line.replace("{n}", name).replace("{m}", r.choice(s.pool)) + "\n")
    return out


def cut(r, s, lines, tokens):
    t = r.choice(tokens)
    return lines[:t[0]] + [lines[t[0]][:t[1]] + "\n"]


def odd_bytes(r, s, lines, tokens):
    return splice(lines, r.choice(tokens), r.choice(["\t", "\\", "'", '"""', "#", "\x00", "é", "\udcff", "\r", "$", "?", "!", "(" * 300, "\n"]))


MUTATIONS = ([delete_token] * 4 + [swap_names] * 5 + [change_number] * 4 + [change_operator] * 4 + [name_to_word] * 4 + [change_library] * 3 +
             [drop_line] * 3 + [insert_line] * 3 + [double_line, move_line, swap_tokens, double_token, indent, indent_under, indent_under, cut, odd_bytes])


def change_sig(r, sig):
    sig = list(sig)
    k = r.randrange(len(sig))
    what = r.random()
    if what < 0.8:
        sig[k] = (sig[k][0], r.choice(TYPES))
    elif what < 0.9:
        del sig[k]
    else:
        j = r.randrange(len(sig))
        sig[k], sig[j] = (sig[k][0], sig[j][1]), (sig[j][0], sig[k][1])
    return sig


def mutant(source, sig, kernel, k, seed):
    """Text, signature and the names of what was done."""
    r = random.Random(f"{seed}/{kernel.number}/{kernel.name}/{k}")
    lines, done = source.lines, []
    if r.random() < 0.15:
        sig = change_sig(r, sig)
        done.append("change_sig")
        if r.random() < 0.5:
            sig = change_sig(r, sig) if sig else sig
    for _ in range(0 if done else r.choice([1, 1, 1, 1, 2, 3])):
        span = source.spans[r.choice(source.used)]
        tokens = [t for t in source.tokens(span)]
        for _ in range(20):
            how = r.choice(MUTATIONS)
            good = [t for t in tokens if t[0] < len(lines) and lines[t[0]][t[1]:t[2]] == t[4]] if lines is not source.lines else tokens
            new = how(r, source, list(lines), good) if good else None
            if new is not None:
                lines = new
                done.append(how.__name__)
                break
    return "".join(lines), sig, "+".join(done)


# ---- a child: compiles the mutants it is told, one line before and one after each -------------------------------


def child(build, kernel, first, last, seed, show=False):
    from _compile import Compiler, split_sig

    path, name = kernel.path, kernel.name
    compiler = Compiler(build, [SITE, SOURCES], split_sig(kernel.bound))
    source = Source(kernel.read(), name)
    sig = split_sig(kernel.sig)
    compiler.compile(path, "import triton\n\n\n@triton.jit\ndef k(x):\n    pass\n", "k", [("x", "*f32")])  # starts LLVM
    base = size_mb("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (int((base + 4 * LIMIT_MB) * 2**20),) * 2)
    out = os.fdopen(1, "w", buffering=1)
    for k in range(first, last):
        text, now, done = mutant(source, sig, kernel, k, seed) if k >= 0 else ("".join(source.lines), sig, "none")
        print(f"begin {k} {done}", file=out)
        if show:
            show_changes(source, text, now)
        reset_peak()
        before, start = size_mb("VmRSS"), time.monotonic()
        status, message = compiler.compile(path, text, name, now)
        seconds, peak = time.monotonic() - start, size_mb("VmHWM") - before
        python = refusal(text) if status == "OK" or "syntax error" in message else ""
        if status == "OK" and python:
            status, message = "WRONG", f"compiles, but Python refuses it: {python}"
        elif status != "OK" and "syntax error" in message and not python and "(((((" not in text and not ON_PURPOSE.search(message):
            status, message = "WRONG", f"is Python, but: {message}"
        print(f"end {k} {status} {seconds:.2f} {max(peak, 0):.0f} {message!r}", file=out)


def refusal(text):
    """What Python says about the text, or ""."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "kernel", "exec")
        except (SyntaxError, ValueError) as e:
            if "prior to global declaration" in str(e) or "outside function" in str(e) or " loop" in str(e):
                return ""  # about meaning, and refused by meaning where a kernel gets there
            return f"{type(e).__name__}: {e}"
        except (MemoryError, RecursionError):  # of Python's own parser
            return ""
    return ""


def size_mb(field):
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return 0


def reset_peak():
    try:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    except OSError:
        pass


def show_changes(source, text, sig):
    import difflib

    sys.stderr.writelines(difflib.unified_diff(source.lines, text.splitlines(True), "kernel", "mutant", n=1))
    print("--sig", ", ".join(f"{a}={b}" for a, b in sig), file=sys.stderr)


# ---- the parent ---------------------------------------------------------------------------------------------------


class Batch:
    """One child at a time working off the mutants [at, last) of a kernel."""

    def __init__(self, o, kernel, first, last):
        self.o, self.kernel, self.at, self.last = o, kernel, first, last
        self.start()

    def start(self):
        argv = [sys.executable, __file__, "--build", self.o.build, "--seed", str(self.o.seed), "--child",
                f"{self.kernel.number}:{self.at}:{self.last}", *(["--launches", self.o.launches] if self.o.launches else [])]
        self.p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                  env=dict(os.environ, DITRON_VERIFY_EACH="1", DITRON_COMPILE_MB="512", PYTHONDONTWRITEBYTECODE="1"))
        os.set_blocking(self.p.stdout.fileno(), False)
        self.buffer, self.doing, self.done, self.since, self.cpu = b"", None, "", time.monotonic(), 0.0

    def lines(self):
        data = self.p.stdout.read() or b""
        self.buffer += data
        *whole, self.buffer = self.buffer.split(b"\n")
        return [w.decode(errors="replace") for w in whole], bool(data)

    def cpu_seconds(self):
        """Processor time of the child: a busy machine is no hang."""
        try:
            fields = open(f"/proc/{self.p.pid}/stat").read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            return 0.0


class Tally:
    def __init__(self):
        self.count, self.finds, self.statuses, self.slowest, self.largest = 0, [], {}, (0, ""), (0, "")


def judge(status, seconds, mb, message):
    """What is wrong with an answer, or None."""
    if seconds > LIMIT_S:
        return f"took {seconds:.1f} s"
    if mb > LIMIT_MB:
        return f"took {mb:.0f} MB"
    if status == "OK":
        return None
    if status in ("INTERNAL", "NO_MEMORY", "WRONG"):
        return f"status {status}: {message}"
    if OURS.search(message):
        return f"a message about the compiler, not the program: {message}"
    if not PLACE.search(message) and status not in ARGUMENTS:
        return f"a diagnostic without a place: {message}"
    if status in ARGUMENTS and len(message) < 10:
        return f"no sentence: {message}"
    return None


def work(o, todo):
    t, batches, queue, shown = Tally(), [], list(todo), time.monotonic()

    def find(kernel, k, done, why):
        record = f"--launches {o.launches} " if o.launches else ""
        command = f"tests/corpus/mutate.py {record}--seed {o.seed} --one {kernel.number}:{k} --show"
        t.finds.append(f"{kernel}, mutant {k} ({done}): {why}\n  {command}")
        print("FOUND " + t.finds[-1], flush=True)

    while queue or batches:
        while queue and len(batches) < o.jobs:
            batches.append(Batch(o, *queue.pop(0)))
        select.select([b.p.stdout for b in batches], [], [], 0.5)
        for b in list(batches):
            lines, more = b.lines()
            for line in lines:
                word, k, rest = (line.split(" ", 2) + [""])[:3]
                b.since = time.monotonic()
                if word == "begin":
                    b.doing, b.done, b.cpu = int(k), rest, b.cpu_seconds()
                elif word == "end":
                    status, seconds, mb, message = rest.split(" ", 3)
                    seconds, mb, message = float(seconds), float(mb), ast.literal_eval(message)
                    cpu = b.cpu_seconds() - b.cpu
                    t.count += 1
                    t.statuses[status] = t.statuses.get(status, 0) + 1
                    t.slowest = max(t.slowest, (min(seconds, cpu + 0.01), f"{b.kernel.number}:{k}"))
                    t.largest = max(t.largest, (mb, f"{b.kernel.number}:{k}"))
                    why = judge(status, min(seconds, cpu + 0.01), mb, message)
                    if int(k) < 0 and status != "OK":
                        why = f"the kernel itself does not compile: {message}"
                    if why:
                        find(b.kernel, int(k), b.done, why)
                    if o.log:
                        print(f"{b.kernel.number}:{k} {b.done} {status} {seconds:.2f}s {mb:.0f}MB {message}", file=o.log)
                    b.at, b.doing = int(k) + 1, None
            hung = b.doing is not None and b.cpu_seconds() - b.cpu > LIMIT_S or time.monotonic() - b.since > 20 * LIMIT_S
            if hung:
                b.p.kill()
            if hung or (b.p.poll() is not None and not more):
                lines, _ = b.lines()
                if lines:  # said in its last moment
                    b.buffer = ("\n".join(lines) + "\n").encode() + b.buffer
                    continue
                err = b.p.stderr.read().decode(errors="replace").strip()[-800:]
                code = b.p.wait()
                b.p.stdout.close()
                b.p.stderr.close()
                if b.doing is not None:
                    t.count += 1
                    find(b.kernel, b.doing, b.done, "hangs" if hung else f"ends the process, status {code}: {err}")
                    b.at = b.doing + 1
                elif b.at < b.last:
                    sys.exit(f"a child ended early at {b.kernel.number}:{b.at}, status {code}: {err}")
                if b.at < b.last:
                    b.start()
                else:
                    batches.remove(b)
        if sys.stderr.isatty() and time.monotonic() - shown > 5:
            shown = time.monotonic()
            print(f"{t.count} mutants, {len(t.finds)} finds", file=sys.stderr)
    return t


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("kernels", nargs="*")
    p.add_argument("--build", default=os.environ.get("BUILD", str(ROOT / "build")))
    p.add_argument("--launches", help="kernels and arguments as run.py --record wrote them, in place of mutants.txt")
    p.add_argument("--mutants", type=int, default=200)
    p.add_argument("--sample", type=int, default=1, help="every Nth kernel")
    p.add_argument("--first", type=int, default=-1, help="the first one; -1 is the kernel itself")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--log", type=argparse.FileType("w"))
    p.add_argument("--one")
    p.add_argument("--show", action="store_true")
    p.add_argument("--child", help=argparse.SUPPRESS)
    o = p.parse_args()
    if not SITE.is_dir():
        print("skipped: no packages of kernels in build/deps; scripts/setup fetches some, `make corpus` all, and both need the network")
        sys.exit(SKIP)
    every = {k.number: k for k in kernels(o.launches)}
    if o.child:
        k, first, last = map(int, o.child.split(":"))
        return child(o.build, every[k], first, last, o.seed)
    if o.one:
        os.environ.update(DITRON_VERIFY_EACH="1", DITRON_COMPILE_MB="512")
        k, m = map(int, o.one.split(":"))
        return child(o.build, every[k], m, m + 1, o.seed, o.show)
    chosen = kernels(o.launches, o.kernels)[::o.sample]
    start = time.monotonic()
    todo = [(k, a, min(a + BATCH, o.mutants)) for k in chosen for a in range(o.first, o.mutants, BATCH)]
    t = work(o, todo)
    print(f"{t.count} mutants of {len(chosen)} kernels in {time.monotonic() - start:.0f} s: "
          + ", ".join(f"{n} {s}" for s, n in sorted(t.statuses.items()))
          + f"; slowest {t.slowest[0]:.2f} s ({t.slowest[1]}), largest {t.largest[0]:.0f} MB ({t.largest[1]}); {len(t.finds)} finds")
    sys.exit(1 if t.finds else 0)


main()
