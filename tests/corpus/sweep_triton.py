"""What Triton itself says to the functions that the front end refuses: traced to its IR for a CUDA target, with the same
arguments, the functions of each module in a process of their own with a time limit.

Where Triton takes any of the arguments that were tried here, the refusal is ours alone. Where it refuses them all, so does
it. Nothing is known where a function cannot be brought to Triton: its module cannot be imported on this machine, or what it
uses is stood in for by packages.py.
"""
import importlib
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from pathlib import Path

LIMIT_S, MEMORY = 120, 16 << 30
NAMES = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "f8e4m3": "fp8e4nv", "f8e5m2": "fp8e5"}


def type_name(text):
    star = "*" if text.startswith("*") else ""
    return star + NAMES.get(text.lstrip("*"), text.lstrip("*"))


class Unknown(Exception):
    """The function cannot be brought to Triton."""


# ---- in the child ------------------------------------------------------------------------------------------------------------
def module_of(root, name):
    import packages
    parts = name.split(".")
    try:
        {"flag_gems": packages.flag_gems, "vllm": packages.vllm, "unsloth": packages.unsloth}.get(parts[0], bool)()
        if root not in sys.path:
            sys.path.append(root)
        for n in range(1, len(parts)):  # a folder's __init__ may ask for a device that is not here
            try:
                importlib.import_module(".".join(parts[:n]))
            except Exception:
                packages.bare_package(".".join(parts[:n]))
        return importlib.import_module(name)
    except BaseException as e:
        raise Unknown(f"its module cannot be imported: {type(e).__name__}: {e}") from None


def jit_function(x):
    """Without the tuners and launchers around it."""
    from triton.runtime.jit import JITFunction
    for _ in range(8):
        if isinstance(x, JITFunction):
            return x
        x = getattr(x, "fn", None) or getattr(x, "_scalar_fn", None)
    raise Unknown("its module has no jit function of that name here")


def stand_in(fn, seen):
    """What fn, or a function that it calls, uses of what only stands in for the real thing; None for nothing."""
    from triton.runtime.jit import JITFunction
    if id(fn) in seen:
        return None
    seen.add(id(fn))
    for name in fn.fn.__code__.co_names:
        x = fn.fn.__globals__.get(name)
        if getattr(x, "stands_in", False) is True:
            return name
        inner = x if isinstance(x, JITFunction) else None
        if inner and (found := stand_in(inner, seen)):
            return found
    return None


def trace(item, module, wrapper, folder, n):
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, make_backend
    scope, text = dict(vars(module)), wrapper["text"]
    if item["source"]:
        text = f"import triton\nimport triton.language as tl\n{item['source']}\n{text}"
    else:
        scope["sweep_target"] = jit_function(getattr(module, item["name"], None))
    path = Path(folder, f"wrapper{n}.py")
    path.write_text(text)
    try:
        exec(compile(text, str(path), "exec"), scope)
    except Exception as e:
        raise Unknown(f"it cannot be called: {type(e).__name__}: {e}") from None
    fn = scope["sweep_entry"]
    if name := stand_in(fn, set()):
        raise Unknown(f"'{name}' is stood in for")
    backend = make_backend(GPUTarget("cuda", 90, 32))
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(fn, {name: type_name(t) for name, t in wrapper["params"]})
    source.make_ir(GPUTarget("cuda", 90, 32), options, backend.get_codegen_implementation(options), backend.get_module_map(), context)


def last_line(e):
    while e.__cause__:  # an error in a function that is called
        e = e.__cause__
    lines = [s.strip() for s in str(e).splitlines() if s.strip(" ^")]
    return f"{type(e).__name__}: {lines[-1] if lines else ''}"[:300]


def ask_one(item, module, folder):
    why = ""
    try:
        for n, wrapper in enumerate(item["wrappers"]):
            try:
                trace(item, module, wrapper, folder, n)
                return {"triton": "compiles", "triton_says": json.dumps(wrapper["shown"])}
            except Unknown:
                raise
            except Exception as e:
                why = why or last_line(e)
    except Unknown as e:
        return {"triton": "unknown", "triton_says": str(e)[:300]}
    return {"triton": "refuses", "triton_says": why}


def ask_module(root, name, items, say):
    """Says one answer a line, and before it which item is in work."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            module, lost = module_of(root, name), None
        except Unknown as e:
            module, lost = None, {"triton": "unknown", "triton_says": str(e)[:300]}
        for item in items:
            say([item["i"], None])
            say([item["i"], lost or ask_one(item, module, folder)])


# ---- in the parent -----------------------------------------------------------------------------------------------------------
def start(root, name, items):
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return {"pid": pid, "fd": read, "root": root, "name": name, "items": items, "end": time.monotonic() + LIMIT_S, "data": b""}
    code = 1
    try:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(quiet, fd)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        with open(write, "w") as out:
            ask_module(root, name, items, lambda x: print(json.dumps(x), file=out, flush=True))
        code = 0
    finally:
        os._exit(code)


def answers(job):
    """What has been said: [(index, answer)]; the items answered are gone from the job, which has LIMIT_S for the next one."""
    *lines, job["data"] = job["data"].split(b"\n")
    found = [x for x in map(json.loads, lines) if x[1]]
    done = {i for i, _ in found}
    job["items"] = [item for item in job["items"] if item["i"] not in done]
    if lines:
        job["end"] = time.monotonic() + LIMIT_S
    return found


def finish(job):
    """Of a child that has ended or is ended here: the item that it was at, and why there is no answer."""
    late = time.monotonic() >= job["end"]
    if late:
        os.killpg(job["pid"], signal.SIGKILL)
    _, status = os.waitpid(job["pid"], 0)
    os.close(job["fd"])
    if not job["items"]:
        return []
    item, code = job["items"].pop(0), os.waitstatus_to_exitcode(status)
    if late or code >= 0:
        return [(item["i"], {"triton": "unknown", "triton_says": f"no answer within {LIMIT_S} s" if late else f"the question ended with status {code}"})]
    return [(item["i"], {"triton": "refuses", "triton_says": f"its process ends with {signal.Signals(-code).name}"})]


def ask(modules, jobs):
    """modules: (root, name, items). Yields (index, {"triton": "compiles" | "refuses" | "unknown", "triton_says": text})."""
    os.environ.pop("TRITON_INTERPRET", None)
    import packages  # noqa: F401  torch and Triton are loaded once, here
    waiting, running = list(modules), []
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(start(*waiting.pop(0)))
        ready, _, _ = select.select([j["fd"] for j in running], [], [], 0.5)
        for j in list(running):
            if j["fd"] in ready:
                chunk = os.read(j["fd"], 1 << 16)
                j["data"] += chunk
                yield from answers(j)
                if chunk:
                    continue
            elif time.monotonic() < j["end"]:
                continue
            running.remove(j)
            yield from finish(j)
            if j["items"]:
                waiting.append((j["root"], j["name"], j["items"]))
