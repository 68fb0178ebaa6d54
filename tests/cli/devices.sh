# Devices by name, on machines with and without a driver for GPUs: one sentence says what is missing.
export DITRON_LIBCUDA=libcuda_of_nobody.so.1
ditron info >out
grep -q "^device *cpu: the processor's cores$" out
grep -q "^device *cuda: none; no NVIDIA driver here (libcuda_of_nobody.so.1: cannot open" out
cat >k.py <<'K'
import triton
import triton.language as tl


@triton.jit
def one(o_ptr):
    tl.store(o_ptr + tl.arange(0, 8), tl.arange(0, 8))
K
no() { # TEXT ARGUMENTS...
  local text=$1
  shift
  if ditron run k.py --grid 1 o_ptr=zeros:i32[8] "$@" >out 2>&1; then
    echo "it ran: $*"
    exit 1
  fi
  grep -qF -- "$text" out || { echo "not said: $text"; cat out; exit 1; }
}
no "there is no device 'cuda:0': no NVIDIA driver here" --device cuda
no "there is no device 'cuda:2': no NVIDIA driver here" --device cuda:2
no "there is no device 'gpu'; there are 'cpu', 'cuda'" --device gpu
ditron run k.py --grid 1 o_ptr=zeros:i32[8] --device cpu | grep -q "0 1 2 3 4 5"

# over a driver made of host memory, as the unit tests have it
export DITRON_LIBCUDA=$BUILD/tests/libcuda_fake.so
test -f "$DITRON_LIBCUDA" || exit 77
ditron info | grep -q "^device *cuda:0: Fake GPU, sm_90, 1.0 GiB, 132 multiprocessors, driver "
no "there is no device 'cuda:1'; this machine has 1 NVIDIA GPU, cuda:0" --device cuda:1
no "a team on 'cuda' has one rank, not 2" --device cuda --ranks 2
# a whole way: compiled for the device's sm_90a, as PTX, loaded and launched there (the stand-in runs nothing)
DITRON_PTXAS=/nowhere/ptxas ditron run k.py --grid 1 o_ptr=full\(7\):i32[8] --device cuda | tee out
grep -q "^one: grid 1x1x1 on 1 rank" out
grep -q "o_ptr i32\[8\] = 7 7 7 7 7 7" out
