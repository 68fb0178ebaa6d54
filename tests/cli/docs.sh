# docs/ir.md and docs/language.md: their tables are those of the sources, a stale one is noticed, and the IR example is valid.
"$ROOT/scripts/gen-docs" --check

mkdir -p t/src t/docs t/scripts
cp -r "$ROOT/src/ir" "$ROOT/src/front" t/src/
cp "$ROOT/scripts/gen-docs" t/scripts/
cp "$ROOT/docs/ir.md" "$ROOT/docs/language.md" t/docs/
sed -i 's/"one value in every element"/"another text"/' t/src/ir/ops.def
! t/scripts/gen-docs --check 2>message
grep -q 'out of date' message
t/scripts/gen-docs
grep -q '`const`.*another text' t/docs/ir.md
t/scripts/gen-docs --check

sed -n '/^```$/,/^```$/p' "$ROOT/docs/ir.md" | sed '/^```$/d' >example.ir
grep -q '^kernel @add' example.ir
ditron opt example.ir >once.ir
diff example.ir once.ir
ditron opt once.ir | diff once.ir -
