# What the GPU tests share: run a kernel on the processor and on the GPU, and compare what comes out.

# same DTYPE TOLERANCE A.npy B.npy: f32, i32 or i64 elements; |a - b| <= TOLERANCE * max(1, |a|) for each, and no NaN.
same() {
  local type
  case $1 in f32) type=f4 ;; i32) type=d4 ;; i64) type=d8 ;; *) echo "same: unknown type $1"; return 1 ;; esac
  paste <(values $type "$3") <(values $type "$4") | awk -v tol="$2" -v a="$3" -v b="$4" '
    NF != 2 { printf "%s and %s differ in length\n", a, b; bad = 1; exit 1 }
    tolower($1 $2) ~ /nan/ { printf "element %d: %s and %s\n", NR - 1, $1, $2; bad = 1; exit 1 }
    { d = $1 - $2; d = d < 0 ? -d : d; m = $1 < 0 ? -$1 : $1; if (m < 1) m = 1 }
    d > tol * m { printf "element %d: %s on the processor, %s on the GPU\n", NR - 1, $1, $2; bad = 1; exit 1 }
    END { if (!bad && NR == 0) { print "nothing was compared"; exit 1 } exit bad }'
}

# The numbers of an .npy file, one a line. Its header is a multiple of 64 bytes long and ends in a newline.
values() {
  local header
  header=$(($(od -An -tu2 -j8 -N2 "$2") + 10))
  od -An -v -t"$1" -w"${1#?}" -j$header "$2" | tr -d ' '
}

# both DTYPE TOLERANCE OUT KERNEL ARGUMENTS...: the tensor OUT of both runs must be the same
both() {
  local dtype=$1 tol=$2 out=$3
  shift 3
  ditron run "$@" --quiet --out "$out=cpu.npy"
  ditron run "$@" --quiet --device "$DEVICE" --out "$out=gpu.npy"
  same "$dtype" "$tol" cpu.npy gpu.npy
}
