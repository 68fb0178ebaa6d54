# Every row of the tables on the GPU under compute-sanitizer: no access outside a tensor or shared memory, no barrier that a part of a warp
# misses. The library itself, which makes descriptors and modules, runs under it too.
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
if [ -z "$sanitizer" ]; then
  echo "not tested: compute-sanitizer, which the CUDA toolkit has, is not on PATH"
  exit 0
fi
row() { # TOLERANCE OUTS KERNEL GRID ARGUMENTS...
  local kernel=$3 grid=$4 tool
  shift 4
  for tool in ${TOOLS:-memcheck synccheck}; do
    "$sanitizer" --tool "$tool" --error-exitcode 9 ditron run "$kernel" --grid "$grid" "$@" --quiet --device "$DEVICE" ||
      { echo "$tool: exit status $?"; return 1; }
  done
}
for file in "$here"/*.table; do
  table "$file"
done
