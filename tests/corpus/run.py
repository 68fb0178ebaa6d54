#!/usr/bin/env python3
"""Runs real Triton kernels from installed packages through Ditron and compares what they compute; see harness.py.

    run.py [--build DIR | --library FILE] [--device cpu|cuda:0|copies] [--sample] [--package] [--json FILE] [--record FILE]
           [--jobs N] [--list] [FILTER ...]

A case runs in a process of its own, with a time limit. Prints a row a kernel and closes with `right N of M` kernels;
fails where fewer than 57 of 60 are right. FILTER: a part of a case's class and name.
"""
import argparse
import importlib
import itertools
import json
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REQUIRED = 57 / 60
MEMORY = 12 << 30  # address space of a case beyond what torch takes


def row_name(path, kernel, packages):
    for folder in packages:
        if Path(path).is_relative_to(folder):
            return f"{Path(path).relative_to(folder)}:{kernel}"
    else:
        return f"generated {re.sub(r'_pid_[0-9]+|_[0-9a-f]{16,}', '', Path(path).name)}:{kernel}"


def run_case(case, library, packages, threads):
    """In the child: what became of the case."""
    import harness
    import torch
    torch.set_num_threads(threads)
    out = {"class": case.kind, "case": case.name, "wrong": None, "kernels": []}
    test = None
    try:
        test = harness.CURRENT = harness.Test(library)
        case.fn(test)
        if not test.launches:
            out["wrong"] = "no kernel was launched"
        elif not test.compared:
            out["wrong"] = "nothing was compared"
    except harness.Wrong as e:
        out["wrong"] = str(e)
    except harness.ditron.Refused as e:
        out["wrong"] = str(e)
    except Exception as e:
        where = traceback.extract_tb(e.__traceback__)[-1]
        out["wrong"] = f"{type(e).__name__} at {Path(where.filename).name}:{where.lineno}: {e}"
        out["trace"] = traceback.format_exc()
    if test:
        out["wrong"] = out["wrong"] or next((r["refused"] for r in test.launches.values() if "refused" in r), None)
        out["error"], out["shapes"] = test.error, test.shapes[:3]
        out["kernels"] = [dict(r, kernel=row_name(path, name, packages)) for (path, name), r in test.launches.items()]
    return out


def start(case, library, packages, threads, logs):
    read, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        os.close(write)
        return {"pid": pid, "fd": read, "case": case, "end": time.time() + case.timeout, "data": b""}
    os.setsid()
    os.close(read)
    log = os.open(logs / f"{case.kind}-{case.name.replace('/', '_').replace(' ', '_')}.log",
                  os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = run_case(case, library, packages, threads)
    if out.get("trace"):
        print(out.pop("trace"), file=sys.stderr, flush=True)
    data = json.dumps(out).encode()
    while data:
        data = data[os.write(write, data):]
    os._exit(0)


def finish(job, timed_out):
    """The result of a child that has ended, or is ended here."""
    if timed_out:
        os.killpg(job["pid"], signal.SIGKILL)
    _, status = os.waitpid(job["pid"], 0)
    os.close(job["fd"])
    try:
        return json.loads(job["data"])
    except ValueError:
        code = os.waitstatus_to_exitcode(status)
        how = f"still running after {job['case'].timeout} s" if timed_out else (
            f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}")
        return {"class": job["case"].kind, "case": job["case"].name, "wrong": how, "kernels": [], "error": 0.0}


def run_all(cases, jobs, library, packages, logs):
    """Yields a result a case, in the order in which they end."""
    waiting, running = list(cases), []
    threads = max(1, (os.cpu_count() or 1) // jobs)
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(start(waiting.pop(0), library, packages, threads, logs))
        ready, _, _ = select.select([j["fd"] for j in running], [], [], 0.5)
        for j in list(running):
            if j["fd"] in ready:
                chunk = os.read(j["fd"], 1 << 16)
                j["data"] += chunk
                if chunk:
                    continue
            elif time.time() < j["end"]:
                continue
            running.remove(j)
            yield finish(j, j["fd"] not in ready)


def shape_text(shapes):
    return " ".join("x".join(map(str, s)) or "scalar" for s in shapes)[:34]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--build", default=str(ROOT / "build"))
    p.add_argument("--library", metavar="FILE", help="libditron.so or libditron.so.0; default: that of the build")
    p.add_argument("--device", default="cpu", metavar="NAME",
                   help="where the kernels run: cpu, cuda:0, or copies, which is the CPU over copies of all tensors")
    p.add_argument("--sample", action="store_true", help="the fast sample")
    p.add_argument("--package", action="store_true", help="launch through the Python package")
    p.add_argument("--json", metavar="FILE", help="write the results there too")
    p.add_argument("--record", metavar="FILE", help="write there what each kernel is launched with, for mutate.py")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--list", action="store_true")
    p.add_argument("--logs", help="folder of what the cases print")
    p.add_argument("filters", nargs="*")
    a = p.parse_args()
    if a.package and a.device != "cpu":
        p.error("--package launches over the CPU's tensors; it goes with no --device")
    library = str(Path(a.library or f"{a.build}/libditron.so").resolve())
    scratch = tempfile.TemporaryDirectory(prefix="ditron-corpus-")
    os.environ["FLAGGEMS_CACHE_DIR"] = scratch.name
    logs = Path(a.logs or scratch.name)
    logs.mkdir(parents=True, exist_ok=True)

    sys.path.insert(0, str(HERE))
    import harness
    harness.DEVICE = a.device
    if a.package:
        import package
        package.use(harness, a.build)
    if a.record:
        harness.RECORD = str(Path(a.record).resolve())
        Path(a.record).write_text("")
    results = []
    for file in sorted(HERE.glob("cases_*.py")):
        if a.sample and "sample=True" not in file.read_text():
            continue  # importing the packages is what takes long
        try:
            importlib.import_module(file.stem)
        except Exception as e:  # its cases are missing: that is a failure, not less to do
            traceback.print_exc()
            results.append({"class": "-", "case": file.stem, "wrong": f"{type(e).__name__}: {e}", "kernels": []})
    cases = [c for c in harness.CASES if (c.sample or not a.sample) and
             (not a.filters or any(f in f"{c.kind} {c.name}" for f in a.filters))]
    if a.list:
        print("\n".join(f"{c.kind} {c.name}{' (sample)' if c.sample else ''}" for c in cases))
        return 0

    print(f"{'':2}{'case':30} {'kernel':74} {'shapes':34} {'error':>8} {'ms':>6} {'MiB':>5}  verdict")
    kernels = {}  # name -> right in all its cases
    begin = time.time()
    for r in itertools.chain(results[:], run_all(cases, a.jobs, library, (harness.PACKAGES, harness.SOURCES), logs)):
        if r["class"] != "-":
            results.append(r)
        wrong = " ".join(r["wrong"].split())[:300] if r["wrong"] else None
        for k in r["kernels"] or [{"kernel": f"({r['case']})", "ms": 0, "mib": 0}]:
            kernels[k["kernel"]] = kernels.get(k["kernel"], True) and not wrong
            print(f"{r['class']:2}{r['case'][:30]:30} {k['kernel']:74} {shape_text(r.get('shapes', [])):34} "
                  f"{r.get('error', 0):8.1g} {k['ms']:6.0f} {k['mib']:5.0f}  {'WRONG' if wrong else 'right'}")
        if wrong:
            print(f"     {wrong}")
        sys.stdout.flush()
    if a.json:
        Path(a.json).write_text(json.dumps(results, indent=1))
    right = sum(kernels.values())
    print(f"right {right} of {len(kernels)} kernels, {len(results)} cases, {time.time() - begin:.0f} s")
    return 0 if kernels and right >= REQUIRED * len(kernels) else 1


if __name__ == "__main__":
    sys.exit(main())
