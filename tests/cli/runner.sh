# The test runner itself: each kind of test passes where it should and, above all, fails where it should.
mkdir -p t/tests/{unit,golden,diag,cli,py} t/build/tests t/scripts
cp "$ROOT/tests/run" t/tests/run
printf '#!/bin/bash\nexit 0\n' | tee t/scripts/check-layers >t/scripts/check-state
printf 'format-check:\n' >t/Makefile
chmod +x t/scripts/*

# a program that prints its file's `# SAY ` lines and leaves with the file's `# EXIT n`
cat >t/build/ditron <<'E2'
#!/bin/bash
sed -n 's/^.*# SAY //p; s/^.*# SAYHERE /'"$(basename "$1")"':/p' "$1"
exit "$(sed -n 's/^.*# EXIT //p' "$1" | tail -1)"
E2
chmod +x t/build/ditron

golden() { printf '%s\n' "# RUN: ${2:-}ditron %s" "# EXIT ${3:-0}" '# SAY one  apple' '# SAY two pears' '# SAY three figs' "$1" >"t/tests/golden/$4.py"; }
golden '# CHECK: one apple
# CHECK: figs' '' 0 good_check
golden '# CHECK: one
# CHECK-NEXT: two
# CHECK-NOT: two
# CHECK: three' '' 0 good_next
golden '# OUTPUT:
# one  apple
# two pears
# three figs' '' 0 good_output
golden '# CHECK: one' '! ' 1 good_failure
golden '# CHECK: figs
# CHECK: one' '' 0 bad_order
golden '# CHECK: one
# CHECK-NEXT: three' '' 0 bad_next
golden '# CHECK: one
# CHECK-NOT: pears' '' 0 bad_not
golden '# CHECK: plums' '' 0 bad_missing
golden '# OUTPUT:
# one  apple' '' 0 bad_output
golden '' '' 0 bad_empty
golden '# CHECK: one' '' 1 bad_status
golden '# CHECK: one' '! ' 0 bad_success
golden '# CHECK: one' '! ' 139 bad_crash

diag() { printf '%s\n' '# RUN: ditron %s' "# EXIT ${2:-1}" "$1" >"t/tests/diag/$3.py"; }
diag 'x  # ERROR: is wrong
# SAYHERE 3:1: error: x is wrong' 1 good
diag '# ERROR@+1: above
x # SAYHERE 4:1: error: from above' 1 good_above
diag '# ERROR@none: nowhere
# SAY error: nowhere to point' 1 good_none
diag 'x  # ERROR: is wrong  # HINT: write y
# SAYHERE 3:1: error: x is wrong
# SAY   hint: write y' 1 good_hint
diag 'x  # ERROR: is wrong
# SAYHERE 4:1: error: x is wrong' 1 bad_line
diag 'x  # ERROR: is wrong' 1 bad_silent
diag 'x  # ERROR: is wrong
# SAYHERE 3:1: error: x is wrong
# SAYHERE 9:1: error: and this' 1 bad_extra
diag 'x  # ERROR: is wrong
# SAYHERE 3:1: error: x is wrong' 0 bad_success
diag 'x  # ERROR: is wrong
# SAYHERE 3:1: error: x is wrong' 134 bad_crash
diag 'x' 1 bad_nothing_expected

echo 'exit 0' >t/tests/cli/good.sh
echo 'echo not here; exit 77' >t/tests/cli/skip.sh
echo 'false; true' >t/tests/cli/bad_e.sh
printf '# TIMEOUT: 1\nsleep 100\n' >t/tests/cli/bad_slow.sh

py() { printf '%s\n' "$1" >"t/tests/py/$2.py"; }
py 'print("ok one"); print("ok two")' good
py 'print("ok one"); print("not ok two")' bad_half
py 'pass' bad_silent
py 'print("ok one"); raise SystemExit(3)' bad_end
py 'print("ok one"); import os; os.abort()' bad_abort

unit() { touch "t/tests/unit/$2.c" && printf '#!/bin/bash\n%s\n' "$1" >"t/build/tests/$2" && chmod +x "t/build/tests/$2"; }
unit 'printf "1..2\nok 1 - a\nok 2 - b\n"' x_good
unit 'printf "1..2\nok 1 - a\nnot ok 2 - b\n"; exit 1' x_bad
unit 'printf "1..2\nok 1 - a\n"' x_bad_short
touch t/tests/unit/x_bad_unbuilt.c

python3 t/tests/run >out && exit 1 # something failed, so must the run
tail -1 out | grep -x '21 passed, 24 failed, 1 skipped' || { cat out; exit 1; }
grep '^FAILED' out | grep -v bad && { echo "failed but is good"; exit 1; }
# each bad file failed, by name
for f in t/tests/*/*bad*; do
  name=$(basename "$f")
  grep -q "^FAILED .*/${name%.*}\(:.*\)\?$" out || { echo "did not fail: $f"; exit 1; }
done
python3 t/tests/run good >good.out
tail -1 good.out | grep -x '[0-9]* passed, 0 failed'
python3 t/tests/run no-such-test && exit 1
python3 t/tests/run --update golden/bad_output
