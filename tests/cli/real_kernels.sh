# Real kernels of public packages, unmodified, beside NumPy. Needs no torch; scripts/setup fetches the packages.
# TIMEOUT: 240
"$PYTHON" "$ROOT/tests/corpus/sample.py" --build "$BUILD"
