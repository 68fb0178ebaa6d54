# The wheel: installed into a fresh environment, without anything of the build, its package compiles and runs, and so does its program.
# TIMEOUT: 900
# SERIAL: builds in the folder that cli/install builds in
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES PYTHONPATH
build=${BUILD#"$ROOT"/} # as the Makefile likes it
make -s -C "$ROOT" BUILD="$build" wheel | tee made
wheel=$ROOT/$(sed -n 's/: [0-9]* bytes$//p' made)
case $wheel in *-cp39-abi3-manylinux_2_35_x86_64.whl) ;; *) echo "the wheel is called $wheel"; exit 1 ;; esac
cp "$wheel" .
python3 -m venv fresh
fresh/bin/pip install -q --no-index --no-deps ./*.whl
bare() { env -i HOME="$PWD" PATH=/usr/bin:/bin "$@"; }
bare fresh/bin/ditron info >out
grep -q "^compiler  x86" out
grep -q "^kernels   $PWD/fresh/" out
bare fresh/bin/python -m ditron --version | grep -q "^ditron [0-9]"
cat >use.py <<'P'
import ctypes
import ditron
import ditron.language as tl


@ditron.jit
def add(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


class Array:  # no NumPy here
    def __init__(self, n):
        self.memory = (ctypes.c_float * n)()
        self.__array_interface__ = {"data": (ctypes.addressof(self.memory), False), "typestr": "<f4", "shape": (n,), "version": 3}


x, out = Array(1000), Array(1000)
x.memory[999] = 41
add[lambda meta: (ditron.cdiv(1000, meta["BLOCK"]),)](x, out, 1000, BLOCK=64)
print(out.memory[0], out.memory[999])
try:
    add[(1,)](x, out, 1000, BLOCK=65)
except ditron.CompilationError as e:
    print("power of two" in str(e))
P
bare fresh/bin/python use.py >said
printf '1.0 42.0\nTrue\n' | diff - said
# nothing was left out, and LLVM stays hidden
fresh/bin/pip check
package=$(echo fresh/lib/python3*/site-packages/ditron)
if nm -D --defined-only "$package"/_native/lib/libditron.so.0 | grep -i llvm; then exit 1; fi
test "$(nm -D --defined-only "$package"/_ditron.abi3.so | awk '$2 != "A"' | wc -l)" = 1
# torch and triton beside it
python=$ROOT/build/deps/corpus/bin/python
if [ -f "$ROOT/build/deps/corpus/ready" ]; then
  mkdir -p b/python && cp -r "$package" b/python/
  BUILD=$PWD/b PYTHONPATH=$ROOT/tests/py "$python" "$ROOT/tests/py/_torch_together.py"
fi
