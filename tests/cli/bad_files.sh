# Files that are damaged, lie, or cannot be read or written: one clear error each, and nothing is left behind or lost.
# TIMEOUT: 240
ulimit -v 12000000
cat >k.py <<'K'
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
K
bad() { # STATUS TEXT COMMAND...
  local status=$1 text=$2 got=0
  shift 2
  timeout 20 "$@" >out 2>err </dev/null || got=$?
  if [ $got != "$status" ] || ! grep -qF -- "$text" err || [ -s out ] ||
    [ "$(grep -cE '^ditron|: error: |^error: ' err)" != 1 ]; then
    printf '%q ' "$@"
    echo "ended with $got, expected $status and one error with '$text':"
    head -c 2000 out err
    exit 1
  fi
}
run() { bad "$1" "$2" ditron run k.py --grid 1 n=8 BLOCK=8 "${@:3}"; }
good="x_ptr=arange:f32[8] y_ptr=zeros:f32[8]"

# ---- .npy
"$PYTHON" - <<'P'
import struct
import numpy as np

x = np.arange(8, dtype="f4")
np.save("good.npy", x)
good = open("good.npy", "rb").read()

def damaged(name, data):
    open(name + ".npy", "wb").write(data)

def header(name, text, version=b"\1\0", data=x.tobytes()):
    text = text.encode() + b"\n"
    size = struct.pack("<H" if version[0] == 1 else "<I", len(text))
    damaged(name, b"\x93NUMPY" + version + size + text + data)

damaged("empty", b"")
damaged("magic", b"\x93NUMPX" + good[6:])
damaged("version", good[:6] + b"\x09" + good[7:])
for n in (5, 9, 11, 60, len(good) - 1):
    damaged(f"cut{n}", good[:n])
damaged("longheader", good[:8] + b"\xff\xff" + good[10:])
header("huge", "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1024), }")
header("overflow", "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }")
header("digits", "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999999, ), }")
header("negative", "{'descr': '<f4', 'fortran_order': False, 'shape': (-8, ), }")
header("lies", "{'descr': '<f4', 'fortran_order': False, 'shape': (9, ), }")
header("axes", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 8), }")
header("noshape", "{'descr': '<f4', 'fortran_order': False, }")
header("garbage", "no dictionary")
header("version2", "{'descr': '<f4', 'fortran_order': False, 'shape': (8", b"\2\0")
np.save("big_endian.npy", x.astype(">f4"))
np.save("fortran.npy", np.asfortranarray(np.zeros((4, 8), "f4")))
np.save("object.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
np.save("complex.npy", np.zeros(8, "c8"))
np.save("struct.npy", np.zeros(8, [("a", "f4")]))
np.save("text.npy", np.array(["ab", "c"]))
P
while read -r name text; do
  run 1 "$name.npy: $text" "x_ptr=@$name.npy" y_ptr=zeros:f32[8]
  run 1 "$name.npy: $text" --interp "x_ptr=@$name.npy:bf16" y_ptr=zeros:bf16[8]
done <<'L'
empty not a .npy file
magic not a .npy file
version .npy version 9
cut5 not a .npy file
cut9 not a .npy file
cut11 truncated
cut60 truncated
cut159 truncated
longheader truncated
huge truncated: its shape needs 4503599627370496 bytes, it has 32
overflow its shape
digits its shape
negative its shape
lies truncated: its shape needs 36 bytes, it has 32
axes its shape
noshape its header is damaged
garbage its header is damaged
version2 its shape
big_endian elements of type '>f4'
fortran stored in Fortran order
object elements of type '|O'
complex elements of type '<c8'
struct elements of a structured type
text elements of type '<U2'
nope No such file
L
mkdir folder && mkfifo pipe && ln -s loop loop
run 1 'folder: not a regular file' x_ptr=@folder y_ptr=zeros:f32[8]
run 1 'pipe: not a regular file' x_ptr=@pipe y_ptr=zeros:f32[8]
run 1 '/dev/zero: not a regular file' x_ptr=@/dev/zero y_ptr=zeros:f32[8]
run 1 'symbolic links' x_ptr=@loop y_ptr=zeros:f32[8]
run 1 'File name too long' "x_ptr=@$(printf 'a%.0s' {1..5000})" y_ptr=zeros:f32[8]
for r in 0 2; do cp good.npy r$r.npy; done
run 1 'r1.npy: No such file' --ranks 3 'x_ptr=@r{rank}.npy' y_ptr=zeros:f32[8]
if [ "$(id -u)" != 0 ]; then
  cp good.npy secret.npy && chmod 0 secret.npy
  run 1 'Permission denied' x_ptr=@secret.npy y_ptr=zeros:f32[8]
fi

# ---- outputs
run 1 'Is a directory' $good --out y_ptr=folder
run 1 'No such file' $good --out y_ptr=nope/y.npy
run 1 'Not a directory' $good --out y_ptr=good.npy/y.npy
run 1 'No space left' $good --out y_ptr=/dev/full
ln -s /dev/full full.npy
run 1 'No space left' $good --out y_ptr=full.npy
run 1 'No space left' $good --out y_ptr=full.npy --interp
test -L full.npy && test -c /dev/full
run 1 'nope/t.svg' $good --quiet --trace nope/t.svg
cp good.npy kept.npy # what was there stays when a disk is full
bad 1 'kept.npy: File too large' bash -c "
  (trap '' XFSZ; ulimit -f 0; exec ditron run k.py --grid 1 n=8 BLOCK=8 $good --quiet --out y_ptr=kept.npy) 2>&1 | cat >&2
  exit \${PIPESTATUS[0]}"
sig='x_ptr=*f32, y_ptr=*f32, n=i32, BLOCK=8'
bad 1 'No space left' ditron compile k.py --sig "$sig" -o full.npy
bad 1 'No space left' ditron compile k.py --sig "$sig" --emit asm -o full.npy
bad 1 'No such file' ditron compile k.py --sig "$sig" -o nope/k.dtk
bad 1 'Is a directory' ditron compile k.py --sig "$sig" -o folder
bad 1 'standard output: No space left' bash -c "ditron compile k.py --sig '$sig' --emit llvm >/dev/full"
bad 1 'standard output: No space left' bash -c 'ditron info >/dev/full'
bad 1 'standard output: No space left' bash -c "ditron run k.py --grid 1 n=8 BLOCK=8 $good >/dev/full"
bad 1 'standard output: Bad file descriptor' bash -c 'ditron info >&-'
{ ditron info || test $? = 141; } | head -0 # nobody listens: quietly
cmp kept.npy good.npy

# ---- the disk cache: what cannot be used is done without
for dir in /dev/null /proc/nope k.py; do
  DITRON_CACHE_DIR=$dir ditron run k.py --grid 1 n=8 BLOCK=8 $good --out y_ptr=y.npy >/dev/null
  cmp y.npy good.npy
done
export DITRON_CACHE_DIR=$PWD/cache
ditron run k.py --grid 1 n=8 BLOCK=8 $good >/dev/null
find cache -type f | grep -q .
for damage in 'truncate -s 100' 'truncate -s 0' 'dd conv=notrunc status=none bs=1 seek=200 if=good.npy of='; do
  find cache -type f | while read -r entry; do
    case $damage in *of=) $damage"$entry" ;; *) $damage "$entry" ;; esac
  done
  ditron run k.py --grid 1 n=8 BLOCK=8 $good --out y_ptr=y.npy >/dev/null
  cmp y.npy good.npy
done

# ---- images and packs, through the one reader that both have
ditron pack --op add -o good.dtp >/dev/null
ditron compile k.py --sig "$sig" -o k.dtk >/dev/null
size=$(stat -c %s good.dtp)
bad 1 'k.dtk: this is not a kernel pack' ditron pack --list k.dtk
bad 1 'k.py: this is not a kernel pack' ditron pack --list k.py
bad 1 'nope.dtp: No such file' ditron pack --list nope.dtp
for n in 0 7 20 100 $((size / 2)) $((size - 1)); do
  head -c "$n" good.dtp >cut.dtp
  bad 1 'cut.dtp' ditron pack --list cut.dtp
  bad 1 'cut.dtp' ditron bench add --n 1000 --rounds 1 --pack cut.dtp
done
for at in 0 8 9 16 24 33 $((size / 2)) $((size - 1)); do # the magic, the version, the sizes, the hash, the content
  "$PYTHON" -c "d = bytearray(open('good.dtp', 'rb').read()); d[$at] ^= 0x15; open('bent.dtp', 'wb').write(d)"
  bad 1 'bent.dtp' ditron pack --list bent.dtp
done
ditron pack --op softmax --m 64 --n 64 -o other.dtp >/dev/null
bad 1 'add' ditron bench add --n 1000 --rounds 1 --pack other.dtp
test -z "$(find . -name '*.part' -o -name '*.tmp')"
