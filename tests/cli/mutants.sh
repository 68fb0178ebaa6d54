# A sample of damaged kernels out of the packages in build/deps; `make mutate` takes all of the corpus.
# TIMEOUT: 600
"$PYTHON" "$ROOT/tests/corpus/mutate.py" --build "$BUILD" --jobs 2 --mutants 12 liger_kernel/ops/softmax liger_kernel/ops/rope unsloth fla/ops/utils/softmax
