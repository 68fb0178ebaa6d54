# docs/messages.md shows what is said today about common mistakes, beside Triton's words as recorded.
# TIMEOUT: 300
"$PYTHON" "$ROOT/tests/corpus/messages.py" --check
