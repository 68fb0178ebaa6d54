# Real kernels of installed packages, a fast sample of `make corpus`; the environment is made by scripts/setup-corpus.
# TIMEOUT: 240
python=$ROOT/build/deps/corpus/bin/python
[ -f "$ROOT/build/deps/corpus/ready" ] && [ -x "$python" ] || exit 77
"$python" "$ROOT/tests/corpus/run.py" --build "$BUILD" --sample
