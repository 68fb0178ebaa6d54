# docs/ir.md: its tables are those of src/ir/*.def, a stale one is noticed, and its example is valid IR.
"$ROOT/scripts/gen-ir-doc" --check

mkdir -p t/src t/docs t/scripts
cp -r "$ROOT/src/ir" t/src/
cp "$ROOT/scripts/gen-ir-doc" t/scripts/
cp "$ROOT/docs/ir.md" t/docs/
sed -i 's/"one value in every element"/"another text"/' t/src/ir/ops.def
! t/scripts/gen-ir-doc --check 2>message
grep -q 'out of date' message
t/scripts/gen-ir-doc
grep -q '`const`.*another text' t/docs/ir.md
t/scripts/gen-ir-doc --check

sed -n '/^```$/,/^```$/p' "$ROOT/docs/ir.md" | sed '/^```$/d' >example.ir
grep -q '^kernel @add' example.ir
ditron opt example.ir >once.ir
diff example.ir once.ir
ditron opt once.ir | diff once.ir -
