#!/usr/bin/env python3
"""Common mistakes, and what is said about them: by Triton and by ditron. Writes docs/messages.md.

    tests/corpus/messages.py            everything anew; needs the corpus environment for Triton's side
    tests/corpus/messages.py --ours     ditron's side anew, Triton's as recorded
    tests/corpus/messages.py --check    is ditron's side as recorded? Needs ditron alone

Triton compiles for compute capability 9.0, which needs no GPU.
"""
import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOC = ROOT / "docs/messages.md"
CORPUS_PYTHON = ROOT / "build/deps/corpus/bin/python"
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"

# (title, kernel file without its imports, signature). The kernel is named `kernel`.
CASES = []


def case(title, sig, text):
    CASES.append((title, text.strip("\n") + "\n", sig))


case("A block size that is no power of two", "x=*f32, n=i32, BLOCK=100", """
@triton.jit
def kernel(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 0.0, mask=i < n)
""")
case("tl.arange up to a run-time value", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    i = tl.arange(0, n)
    tl.store(x + i, 0.0)
""")
case("A tile of a run-time size", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    acc = tl.zeros((n, ), dtype=tl.float32)
    tl.store(x + tl.arange(0, 16), tl.sum(acc))
""")
case("Tiles of different lengths", "x=*f32", """
@triton.jit
def kernel(x):
    a = tl.load(x + tl.arange(0, 64))
    b = tl.load(x + tl.arange(0, 32))
    tl.store(x + tl.arange(0, 64), a + b)
""")
case("A row and a column without new axes", "x=*f32, out=*f32", """
@triton.jit
def kernel(x, out):
    m, n = tl.arange(0, 16), tl.arange(0, 32)
    tl.store(out + m[:, None] * 32 + n, tl.load(x + m) * tl.load(x + n))
""")
case("An accumulator that begins as 0", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    i = tl.arange(0, 64)
    acc = 0
    for k in range(n):
        acc += tl.load(x + k * 64 + i)
    tl.store(x + i, acc)
""")
case("A loop that changes the type of a scalar", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    total = 0
    for k in range(n):
        total = total + tl.load(x + k)
    tl.store(x, total)
""")
case("A name that one arm of an if defines", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    if n > 10:
        scale = 2.0
    tl.store(x, scale)
""")
case("Arms of an if that give one name two types", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    v = tl.load(x)
    if n > 10:
        v = tl.load(x + tl.arange(0, 16))
    tl.store(x, tl.sum(v))
""")
case("A chain of comparisons", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    i = tl.arange(0, 64)
    tl.store(x + i, 0.0, mask=0 < i < n)
""")
case("`and` between conditions of a tile", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    v = tl.load(x + tl.arange(0, 64))
    tl.store(x + tl.arange(0, 64), 0.0, mask=v and v > 1.0)
""")
case("A tile as the condition of an if", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    i = tl.arange(0, 64)
    v = tl.load(x + i)
    if v > 0:
        v = v * 2
    tl.store(x + i, v)
""")
case("return inside a loop", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    for k in range(n):
        v = tl.load(x + k)
        if v < 0:
            return
        tl.store(x + k, v * 2)
""")
case("break inside a loop", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    for k in range(n):
        v = tl.load(x + k)
        if v < 0:
            break
        tl.store(x + k, v * 2)
""")
case("A mask of another shape", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    i, j = tl.arange(0, 64), tl.arange(0, 32)
    v = tl.load(x + i, mask=j < n)
    tl.store(x + i, v)
""")
case("`other` without a mask", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    v = tl.load(x + tl.arange(0, 64), other=0.0)
    tl.store(x + tl.arange(0, 64), v)
""")
case("A tile stored through a scalar pointer", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    tl.store(x, tl.load(x + tl.arange(0, 64)))
""")
case("A load of what is no pointer", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.load(n + i))
""")
case("tl.exp of half precision", "x=*f16", """
@triton.jit
def kernel(x):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.exp(tl.load(x + i)))
""")
case("tl.sqrt of an integer", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    tl.store(x, tl.sqrt(n))
""")
case("tl.dot with a K of 8", "x=*f16", """
@triton.jit
def kernel(x):
    m, k = tl.arange(0, 16), tl.arange(0, 8)
    a = tl.load(x + m[:, None] * 8 + k[None, :])
    b = tl.load(x + k[:, None] * 16 + m[None, :])
    tl.store(x + m[:, None] * 16 + m[None, :], tl.dot(a, b))
""")
case("tl.dot of different types", "x=*f16, y=*f32", """
@triton.jit
def kernel(x, y):
    i = tl.arange(0, 32)
    at = i[:, None] * 32 + i[None, :]
    tl.store(y + at, tl.dot(tl.load(x + at), tl.load(y + at)))
""")
case("tl.dot of shapes that do not fit", "x=*f16", """
@triton.jit
def kernel(x):
    m, k = tl.arange(0, 32), tl.arange(0, 64)
    a = tl.load(x + m[:, None] * 64 + k[None, :])
    tl.store(x + m[:, None] * 32 + m[None, :], tl.dot(a, a))
""")
case("A constant too large for its tile", "x=*i8", """
@triton.jit
def kernel(x):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.load(x + i) + 1000)
""")
case("// between floats", "x=*f32", """
@triton.jit
def kernel(x):
    tl.store(x, tl.load(x) // 2.0)
""")
case("A plain global number", "x=*f32", """
WIDTH = 64


@triton.jit
def kernel(x):
    tl.store(x + tl.arange(0, WIDTH), 0.0)
""")
case("A slice of a tile", "x=*f32", """
@triton.jit
def kernel(x):
    v = tl.load(x + tl.arange(0, 64))
    tl.store(x + tl.arange(0, 4), v[0:4])
""")
case("An element of a tile by its index", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    v = tl.load(x + tl.arange(0, 64))
    tl.store(x, v[n])
""")
case("An assignment to an element of a tile", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    v = tl.load(x + tl.arange(0, 64))
    v[0] = 1.0
    tl.store(x + tl.arange(0, 64), v)
""")
case("A pointer indexed like an array", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    tl.store(x, x[n] + 1.0)
""")
case("The shape of a tensor argument", "x=*f32", """
@triton.jit
def kernel(x):
    n = x.shape[0]
    tl.store(x, n)
""")
case("A function without @triton.jit", "x=*f32, n=i32", """
def double(v):
    return v * 2


@triton.jit
def kernel(x, n):
    tl.store(x, double(tl.load(x)))
""")
case("A torch function", "x=*f32", """
@triton.jit
def kernel(x):
    acc = torch.zeros(64)
    tl.store(x + tl.arange(0, 64), acc)
""")
case("A helper called without an argument", "x=*f32", """
@triton.jit
def scaled(v, factor):
    return v * factor


@triton.jit
def kernel(x):
    tl.store(x, scaled(tl.load(x)))
""")
case("A keyword that the function does not have", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.load(x + i, msk=i < n))
""")
case("A library function with a typing error", "x=*f32", """
@triton.jit
def kernel(x):
    tl.store(x, tl.exponential(tl.load(x)))
""")
case("An assignment to a constexpr", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    width: tl.constexpr = 32
    width = 64
    tl.store(x + tl.arange(0, width), 0.0)
""")
case("A run-time value for a constexpr parameter", "x=*f32, n=i32", """
@triton.jit
def cleared(SIZE: tl.constexpr):
    return tl.zeros((SIZE, ), tl.float32)


@triton.jit
def kernel(x, n):
    tl.store(x + tl.arange(0, 64), cleared(n))
""")
case("A helper that returns different types", "x=*f32, n=i32", """
@triton.jit
def pair(x, n):
    if n > 0:
        return tl.load(x), n
    return 0, n


@triton.jit
def kernel(x, n):
    v, m = pair(x, n)
    tl.store(x, v + m)
""")
case("tl.static_range up to a run-time value", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    for k in tl.static_range(n):
        tl.store(x + k, 0.0)
""")
case("A loop over a tile", "x=*f32", """
@triton.jit
def kernel(x):
    total = 0.0
    for v in tl.load(x + tl.arange(0, 16)):
        total += v
    tl.store(x, total)
""")
case("A lambda of run-time values", "x=*f32", """
@triton.jit
def kernel(x):
    square = lambda v: v * v
    tl.store(x, square(tl.load(x)))
""")
case("A list of tiles", "x=*f32", """
@triton.jit
def kernel(x):
    rows = [tl.load(x + k * 64 + tl.arange(0, 64)) for k in range(4)]
    tl.store(x + tl.arange(0, 64), rows[0] + rows[3])
""")
case("list.append", "x=*f32", """
@triton.jit
def kernel(x):
    rows = []
    for k in tl.static_range(4):
        rows.append(tl.load(x + k))
    tl.store(x, rows[0] + rows[3])
""")
case("An f-string of a run-time value", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    tl.device_print(f"n is {n}")
    tl.store(x, 0.0)
""")
case("try", "x=*f32, n=i32", """
@triton.jit
def kernel(x, n):
    try:
        v = tl.load(x + n)
    except IndexError:
        v = 0.0
    tl.store(x, v)
""")
case("A kernel launched by a kernel", "x=*f32, n=i32", """
@triton.jit
def inner(x):
    tl.store(x, 0.0)


@triton.jit
def kernel(x, n):
    inner[(1, )](x)
""")
case("A reshape to another number of elements", "x=*f32", """
@triton.jit
def kernel(x):
    v = tl.load(x + tl.arange(0, 64))
    tl.store(x + tl.arange(0, 8), tl.sum(tl.reshape(v, (8, 4)), axis=1))
""")
case("A reduction along an axis that is not there", "x=*f32", """
@triton.jit
def kernel(x):
    v = tl.load(x + tl.arange(0, 64))
    tl.store(x, tl.sum(v, axis=1))
""")


# ---- the two compilers ---------------------------------------------------------------------------------------

TRITON_SIDE = r"""
import importlib.util, json, sys, triton
from triton.backends.compiler import GPUTarget

SHORT = {"f16": "fp16", "f32": "fp32", "f64": "fp64"}
out = []
for path, sig in json.load(open(sys.argv[1])):
    spec = importlib.util.spec_from_file_location("case", path)
    try:
        m = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(m)
        types, consts = {}, {}
        for entry in sig.split(", "):
            name, what = entry.split("=")
            if what.lstrip("-").isdigit():
                consts[name], types[name] = int(what), "constexpr"
            else:
                star = "*" if what[0] == "*" else ""
                types[name] = star + SHORT.get(what.lstrip("*"), what.lstrip("*"))
        src = triton.compiler.ASTSource(fn=m.kernel, signature=types, constexprs=consts)
        triton.compile(src, target=GPUTarget("cuda", 90, 32))
        out.append("")
    except BaseException as e:
        text = str(e) if type(e).__name__ == "CompilationError" else f"{type(e).__name__}: {e}"
        cause = e.__cause__
        while cause is not None:  # what the last lines of the traceback say
            extra = str(cause) if type(cause).__name__ == "CompilationError" else f"{type(cause).__name__}: {cause}"
            if str(cause) and str(cause) not in text:
                text += "\n" + extra
            cause = cause.__cause__
        out.append(text)
json.dump([triton.__version__, out], open(sys.argv[2], "w"))
"""


def triton_messages(folder):
    """The messages, and Triton's version."""
    import json

    jobs = []
    for k, (_, text, sig) in enumerate(CASES):
        path = Path(folder) / f"t{k}.py"
        path.write_text(HEAD + text)
        jobs.append((str(path), sig))
    (Path(folder) / "jobs.json").write_text(json.dumps(jobs))
    (Path(folder) / "side.py").write_text(TRITON_SIDE)
    subprocess.run([CORPUS_PYTHON, f"{folder}/side.py", f"{folder}/jobs.json", f"{folder}/out.json"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600,
                   env=dict(os.environ, TRITON_CACHE_DIR=f"{folder}/cache"))
    version, out = json.loads((Path(folder) / "out.json").read_text())
    return version, [tidy(re.sub("0x[0-9a-f]{6,}", "0x...", t.replace(folder + "/", ""))) for t in out]


def ditron_message(folder, text, sig):
    path = Path(folder) / "kernel.py"
    path.write_text(HEAD + text)
    p = subprocess.run(["ditron", "compile", "kernel.py:kernel", "--target", "x86-64", "--sig", sig], cwd=folder,
                       capture_output=True, text=True, timeout=60)
    return "" if p.returncode == 0 else tidy(p.stderr.replace("ditron compile: ", ""))


def tidy(text):
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


# ---- the document --------------------------------------------------------------------------------------------


def block(text, language=""):
    return f"```{language}\n{text}\n```\n"


def said(text):
    return block(text) if text else "*(compiles)*\n"


def document(version, triton, ours):
    out = [f"""# Messages

What is said about common mistakes: by Triton {version} (compute capability 9.0, the text of its exception), and by ditron.
Written by `tests/corpus/messages.py`; a test compares ditron's side with what is said today. Every file begins with
`import torch`, `import triton` and `import triton.language as tl`, so the kernel stands at line 6.
"""]
    for k, (title, text, sig) in enumerate(CASES):
        out.append(f"\n## {k + 1}. {title}\n\nArguments: `{sig}`\n\n{block(text.rstrip(), 'python')}\n"
                   f"Triton:\n{said(triton[k])}\nditron:\n{said(ours[k])}")
    return "".join(out)


def recorded():
    """Version and Triton's messages, by title, as the document holds them."""
    text = DOC.read_text()
    version = re.search(r"by Triton (\S+)", text).group(1)
    found = {}
    for part in re.split(r"^## \d+\. ", text, flags=re.M)[1:]:
        m = re.search(r"^Triton:\n(?:```\n(.*?)\n```|\*\(compiles\)\*)\n\nditron:", part, re.S | re.M)
        found[part.splitlines()[0]] = (m.group(1) or "") if m else None
    return version, found


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--ours", action="store_true", help="Triton's side as recorded")
    p.add_argument("--check", action="store_true", help="compare only")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ours = [ditron_message(folder, text, sig) for _, text, sig in CASES]
        if o.ours or o.check:
            version, found = recorded()
            missing = [title for title, _, _ in CASES if found.get(title) is None]
            if missing:
                sys.exit(f"no record of Triton's message for: {', '.join(missing)}; run {sys.argv[0]}")
            triton = [found[title] for title, _, _ in CASES]
        else:
            version, triton = triton_messages(folder)
    new = document(version, triton, ours)
    if not o.check:
        DOC.write_text(new)
        return
    old = DOC.read_text()
    if new != old:
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "docs/messages.md", "now"))
        sys.exit("docs/messages.md is stale: tests/corpus/messages.py --ours renews it")


main()
