# Real kernels of installed packages, a fast sample of `make corpus`; the environment is made by scripts/setup-corpus.
# TIMEOUT: 240
python=$ROOT/build/deps/corpus/bin/python
[ -f "$ROOT/build/deps/corpus/ready" ] && [ -x "$python" ] ||
  { echo "skipped: no environment with torch and Triton in build/deps/corpus; make corpus makes it (some GB)"; exit 77; }
"$python" "$ROOT/tests/corpus/run.py" --build "$BUILD" --sample
"$python" "$ROOT/tests/corpus/run.py" --build "$BUILD" --sample --package
"$python" "$ROOT/tests/corpus/run.py" --build "$BUILD" --sample --device copies softmax  # as on a GPU, on the CPU
