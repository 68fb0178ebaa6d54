# The bundle: one archive below its size that, unpacked anywhere and with an empty environment, has a program that runs.
# TIMEOUT: 900
# SERIAL: builds in the folder that cli/install builds in
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
build=${BUILD#"$ROOT"/} # as the Makefile likes it
make -s -C "$ROOT" BUILD="$build" dist | tee made
archive=$ROOT/$(sed -n 's/: [0-9]* bytes$//p' made)
mkdir elsewhere
tar -C elsewhere -xf "$archive"
top=$(echo "$PWD"/elsewhere/*)
bare() { env -i HOME="$PWD" PATH=/usr/bin:/bin "$@"; }
bare "$top/bin/ditron" info >out
grep -q "^compiler  x86" out
grep -q "^kernels   $top/" out
grep -q "^device *cuda" out
bare "$top/bin/ditron" run "$top/share/ditron/kernels/overlap.py:ag_gemm_fused_kernel" --ranks 2 --grid 12 --quiet \
  "x_ptr=randn:f32[16,64]" "a_ptr=sym:empty:f32[32,64]" "b_ptr=randn:f32[64,32]" "c_ptr=empty:f32[32,32]" \
  "flags_ptr=sym:zeros:i64[2]" epoch=1 M=32 N=32 K=64 PARTS=1 BLOCK=256 BLOCK_M=16 BLOCK_N=16 BLOCK_K=16 GROUP_M=2
if grep -q "^device *cuda: none" out; then
  bare "$top/tests/gpu/run" | grep -q "no GPU was tested"
fi
gcc -Wall -Werror -I"$top/include" "$top/examples/c/compile_and_launch.c" -o compiled -L"$top/lib" -lditron -lditron-rt
LD_LIBRARY_PATH=$top/lib ./compiled | tail -3
