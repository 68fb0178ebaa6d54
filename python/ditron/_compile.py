"""Requests to compile, answered by the disk cache or by child processes: `ditron worker`. A crash of the compiler ends the child;
the caller gets an exception with what it said. Children end with this process, or when nothing was asked for a while."""
import atexit
import os
import select
import struct
import threading
import time

from . import _ditron, _settings, _values

VERSION = 2
IDLE_SECONDS = 120
PROGRAM = os.path.join(os.path.dirname(os.path.realpath(__file__)), "_native", "bin", "ditron")


def request(path, source, kernel, target, num_warps, num_stages, max_registers, asserts, search, bound, args, first_only=False):
    """The bytes of dt_compile_request. bound, args: name -> value in bytes."""
    text = _values.text

    def named(values):
        return struct.pack("<I", len(values)) + b"".join(text(n) + v for n, v in values.items())

    return b"".join([
        bytes([VERSION]), text(path), bytes([source is not None]), text(source or ""), text(kernel), text(target),
        struct.pack("<iiiB", num_warps, num_stages, max_registers, (0 if asserts else 4) | (8 if first_only else 0)),
        struct.pack("<I", len(search)),
        *map(text, search), named(bound), named(args)])


class Worker:
    """One child. Requests to it are made one at a time."""

    def __init__(self):
        import subprocess  # not before there is something to compile
        import tempfile
        self.said = tempfile.TemporaryFile()
        self.process = subprocess.Popen([str(PROGRAM), "worker", "--idle", str(IDLE_SECONDS)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.said,
                                        start_new_session=True)  # a Ctrl-C is this process's matter
        self.owner = os.getpid()

    def alive(self):
        return self.owner == os.getpid() and self.process.poll() is None

    def read(self, n, until):
        out = b""
        fd = self.process.stdout.fileno()
        while len(out) < n:
            left = until - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                self.process.kill()
                self.process.wait()
                raise TimeoutError
            got = os.read(fd, min(n - len(out), 1 << 20))
            if not got:
                raise EOFError
            out += got
        return out

    def ask(self, request):
        """(status, error, remarks, image)"""
        until = time.monotonic() + _settings.COMPILE_SECONDS
        self.process.stdin.write(struct.pack("<I", len(request)) + request)
        self.process.stdin.flush()
        reply = self.read(struct.unpack("<I", self.read(4, until))[0], until)
        status, n = struct.unpack_from("<iI", reply)
        error, at = reply[8:8 + n], 8 + n
        n, = struct.unpack_from("<I", reply, at)
        return status, error.decode(errors="replace"), reply[at + 4:at + 4 + n].decode(errors="replace"), reply[at + 4 + n:]

    def last_words(self):
        self.said.seek(0)
        return self.said.read()[-2000:].decode(errors="replace").strip()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.said.close()
        self.process.wait()


class Workers:
    """Children that nobody is waiting for. A new one is started where there is none."""

    def __init__(self):
        self.idle, self.lock = [], threading.Lock()

    def take(self, fresh):
        with self.lock:
            while self.idle and not fresh:
                worker = self.idle.pop()
                if worker.alive():
                    return worker, False
        return Worker(), True

    def give(self, worker):
        with self.lock:
            self.idle.append(worker)

    def close(self):
        with self.lock:
            mine = [w for w in self.idle if w.owner == os.getpid()]
            self.idle = []
        for worker in mine:
            worker.close()

    def forked(self):
        self.idle, self.lock = [], threading.Lock()  # they are the parent's


WORKERS = Workers()
atexit.register(WORKERS.close)


def compile_in_child(request):
    """The image's bytes, or an exception of the diagnostics, of a crash or of a compile that did not end."""
    if not os.path.exists(PROGRAM):
        raise _ditron.Error(f"the package lacks {PROGRAM}, which compiles; DITRON_COMPILE_HERE=1 compiles in this process instead")
    for attempt in range(2):
        worker, fresh = WORKERS.take(fresh=attempt > 0)
        try:
            status, error, _, image = worker.ask(request)
        except TimeoutError:
            _ditron.fail(17, f"the compiler did not end within {_settings.COMPILE_SECONDS:g} s; "
                             "DITRON_COMPILE_SECONDS sets the longest time")
        except (EOFError, BrokenPipeError):
            code = worker.process.wait()
            if not fresh and not code:  # so the next round starts one
                continue
            words = worker.last_words()
            how = f"signal {-code}" if code < 0 else f"exit status {code}"
            _ditron.fail(17, f"the compiler crashed ({how})" + (f":\n{words}" if words else ""))
        WORKERS.give(worker)
        if status:
            _ditron.fail(status, error)
        return image
    raise AssertionError("the second attempt returns or raises")


def image_of(request):
    """The compiled kernel of a request."""
    image = _ditron.cached(request)
    if image is None:
        image = _ditron.compile_here(request) if _settings.COMPILE_HERE else _ditron.read_image(compile_in_child(request))
    return image
