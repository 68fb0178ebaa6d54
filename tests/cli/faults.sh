# Faults as the program reports them: a dropped signal on threads and processes, and a rank that is killed.
# TIMEOUT: 300
before=$(find /dev/shm -name "*ditron*" | sort)

# ---- all-gather + GEMM whose pushing instances forget to release: every rank waits for its peers, and says so
mkdir broken
cp "$ROOT/kernels/tile_order.py" broken/
sed 's/^        dl.release(flags_ptr + rank, 1, rank=peer, sig_op="add", scope="sys")/        pass/' "$ROOT/kernels/overlap.py" > broken/overlap.py
if cmp -s broken/overlap.py "$ROOT/kernels/overlap.py"; then
  echo "the release was not found in kernels/overlap.py"
  exit 1
fi
fused() { # PREFIX... -- OPTIONS...: the broken kernel on 3 ranks
  local prefix=()
  while [ "$1" != -- ]; do prefix+=("$1"); shift; done
  shift
  "${prefix[@]}" ditron run broken/overlap.py:ag_gemm_fused_kernel "$@" --grid 12 --threads 1 --quiet --deadline 2 "x_ptr=randn:f32[16,64]" \
    "a_ptr=sym:zeros:f32[48,64]" "b_ptr=randn:f32[64,32]" "c_ptr=zeros:f32[48,32]" "flags_ptr=sym:zeros:i64[3]" epoch=1 M=48 N=32 \
    K=64 PARTS=2 BLOCK=256 BLOCK_M=16 BLOCK_N=16 BLOCK_K=16 GROUP_M=2
}
check_report() { # FILE
  cat "$1"
  grep -q "a wait passed its deadline of 2 s" "$1"
  grep -qE "kernel 'ag_gemm_fused_kernel', program \([0-9]+, 0, 0\)" "$1"
  line=$(grep -n 'dl.acquire(flags_ptr + owner, at_least=target' broken/overlap.py | cut -d: -f1)
  grep -q "overlap.py:$line" "$1"
  grep -q "'flags_ptr'" "$1"
  grep -q "should be >= 2, but is 0" "$1"
  grep -q "no signal call has written it" "$1"
  grep -qE "^  kernel .*\(and 1 more instance\)" "$1" # each wait once, with how many share it
  grep -qE "^  also kernel .*'flags_ptr' \+ 8" "$1"
}
if fused -- --ranks 3 2> threads.txt; then echo "must fail"; exit 1; fi
check_report threads.txt
if fused ditron launch -n 3 -- 2> processes.txt; then echo "must fail"; exit 1; fi
check_report processes.txt
told_once() { # FILE: one process of three shows the report, the others a line each
  test "$(grep -cE '^ditron: rank [0-9]+ stopped too' "$1")" = "$2"
  test "$(grep -cE "^ditron: .*$3" "$1")" = 1
}
told_once processes.txt 2 'a wait passed its deadline of 2 s'

# ---- a killed rank: the others stop within 5 s and name it
cat > forever.py <<'PY'
import triton
import triton.language as tl
import ditron
import ditron.language as dl


@ditron.jit
def forever(flags_ptr):
    dl.acquire(flags_ptr, at_least=1, scope="sys")
PY
children() { pgrep -P "$1" || true; }
for victim in 0 1 2; do
  ditron launch -n 3 ditron run forever.py --grid 1 --quiet --deadline 100 flags_ptr=sym:zeros:i64[1] 2> killed.txt &
  launcher=$!
  for _ in $(seq 200); do # until all ranks wait
    sleep 0.1
    ranks=$(children $launcher | wc -l)
    threads=$(for p in $(children $launcher); do ls "/proc/$p/task" 2> /dev/null || true; done | wc -l)
    if [ "$ranks" = 3 ] && [ "$threads" -ge 12 ]; then break; fi
  done
  sleep 1.5
  pid=0
  for p in $(children $launcher); do
    rank=$(tr '\0' '\n' < "/proc/$p/environ" | sed -n 's/^DITRON_RANK=//p')
    if [ "$rank" = $victim ]; then pid=$p; fi
  done
  start=$(date +%s%N)
  kill -KILL "$pid"
  code=0
  wait $launcher || code=$?
  took=$((($(date +%s%N) - start) / 1000000))
  cat killed.txt
  echo "rank $victim (process $pid) killed: exit $code after $took ms"
  test $code -ne 0
  test $took -lt 5000
  told_once killed.txt 1 "rank $victim \(process $pid\) has ended"
  grep -q "rank $victim was ended by signal 9" killed.txt
done
test "$before" = "$(find /dev/shm -name "*ditron*" | sort)"
