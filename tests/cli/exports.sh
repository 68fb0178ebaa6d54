# The shared libraries export the functions of ditron.h, the few that one takes from the other, and nothing else.
nm -D --defined-only "$BUILD/libditron-rt.so" | awk '{print $3}' | sort >rt
nm -D --defined-only "$BUILD/libditron.so" | awk '{print $3}' | sort >full
grep '^DT_API' "$ROOT/include/ditron/ditron.h" | grep -oE '\bdt_[a-z0-9_]+\(' | tr -d '(' | sort -u >declared
grep -rhoE 'DT_SHARED [^;]*' "$ROOT"/src/*/*.h | grep -oE '\b[a-z0-9_]+\(' | tr -d '(' | sort -u >shared
echo "exported but in no header:"
sort rt full | comm -23 - <(sort declared shared) | tee surplus
echo "public but exported by neither:"
comm -23 declared <(sort -u rt full) | tee missing
echo "exported by both:"
comm -12 rt full | tee twice
test ! -s surplus && test ! -s missing && test ! -s twice
