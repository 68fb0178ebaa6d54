# Every program under examples/c builds against the libraries and runs; those that need no compiler run in processes without LLVM.
# TIMEOUT: 300
build() { # NAME LIBRARIES...
  local name=$1
  shift
  cc -std=c11 -Wall -Wextra -Werror -O1 -I"$ROOT/include" "$ROOT/examples/c/$name.c" -o "$name" -L"$BUILD" "$@" -lm \
    -Wl,-rpath,"$BUILD"
}
without_llvm() { # NAME
  if ldd "./$1" | grep -i llvm; then
    echo "$1 loads LLVM"
    exit 1
  fi
}
export DITRON_KERNELS="$ROOT/kernels"

build compile_and_launch -lditron -lditron-rt
./compile_and_launch | grep -x 'saxpy: 100000 elements, 0 wrong'

ditron compile "$ROOT/kernels/elementwise.py:add_kernel" --target x86-64 \
  --sig "x_ptr=*f32, y_ptr=*f32, out_ptr=*f32, n_elements=i32, BLOCK_SIZE=1024" -o add.dtk
build ahead_of_time -lditron-rt
without_llvm ahead_of_time
./ahead_of_time add.dtk | grep -x 'add: 5000 elements, 0 wrong'

build two_ranks -lditron -lditron-rt
./two_ranks | grep -c ', 0 wrong' | grep -x 2
ditron launch -n 2 ./two_ranks | grep -c ', 0 wrong' | grep -x 2

ditron pack -o ag_gemm.dtp --op ag_gemm --variant plain --variant overlap --ranks 4 --m 512 --n 1024 --k 256
build ag_gemm -lditron-rt
without_llvm ag_gemm
./ag_gemm ag_gemm.dtp | grep -c 'largest error 0' | grep -x 8
if ./ag_gemm 2> message; then
  echo "a process without a compiler and without a pack must fail"
  exit 1
fi
grep -q 'has no compiler' message
