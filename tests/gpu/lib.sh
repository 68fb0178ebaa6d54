# What the GPU tests share: run a kernel on the processor and on the GPU, and compare what comes out.

# same DTYPE TOLERANCE A.npy B.npy: f32, f16, i32 or i64 elements, "" for what the files say; |a - b| <= TOLERANCE * max(1, |a|) for
# each, or both the same infinity, and no NaN, and there must be some.
same() {
  local type=${1:-$(dtype_of "$3")}
  case $type in
  f32 | f16 | i32 | i64) ;;
  *) echo "same: unknown type $type"; return 1 ;;
  esac
  [ "$(dtype_of "$3")" = "$(dtype_of "$4")" ] || { echo "$3 and $4 differ in type"; return 1; }
  if cmp -s "$3" "$4"; then # the same bits, which are numbers
    values "$type" "$3" | awk -v a="$3" '
      tolower($1) ~ /nan/ { printf "element %d: %s\n", NR - 1, $1; bad = 1; exit 1 }
      END { if (!bad && NR == 0) { print "nothing was compared"; exit 1 } exit bad }'
    return
  fi
  paste <(values "$type" "$3") <(values "$type" "$4") | awk -v tol="$2" -v a="$3" -v b="$4" '
    NF != 2 { printf "%s and %s differ in length\n", a, b; bad = 1; exit 1 }
    tolower($1 $2) ~ /nan/ { printf "element %d: %s and %s\n", NR - 1, $1, $2; bad = 1; exit 1 }
    $1 == $2 { next }
    tolower($1 $2) ~ /inf/ { printf "element %d: %s on the processor, %s on the GPU\n", NR - 1, $1, $2; bad = 1; exit 1 }
    { d = $1 - $2; d = d < 0 ? -d : d; m = $1 < 0 ? -$1 : $1; if (m < 1) m = 1 }
    d > tol * m { printf "element %d: %s on the processor, %s on the GPU\n", NR - 1, $1, $2; bad = 1; exit 1 }
    END { if (!bad && NR == 0) { print "nothing was compared"; exit 1 } exit bad }'
}

# The element type of an .npy file.
dtype_of() {
  case $(head -c 128 "$1" | tr -d '\0' | LC_ALL=C sed -n "s/.*'descr': '\([^']*\)'.*/\1/p") in
  '<f4') echo f32 ;; '<f2') echo f16 ;; '<i4') echo i32 ;; '<i8') echo i64 ;; *) echo unknown ;;
  esac
}

# The numbers of an .npy file, one a line. Its header is a multiple of 64 bytes long and ends in a newline.
values() { # DTYPE FILE
  local header form
  case $1 in f32) form=f4 ;; f16) form=u2 ;; i32) form=d4 ;; i64) form=d8 ;; esac
  header=$(($(od -An -tu2 -j8 -N2 "$2") + 10))
  od -An -v -t"$form" -w"${form#?}" -j$header "$2" | tr -d ' ' | if [ "$1" = f16 ]; then halves; else cat; fi
}

# 16-bit floats, given as unsigned numbers
halves() {
  awk '{ s = $1 >= 32768 ? -1 : 1; e = int($1 % 32768 / 1024); m = $1 % 1024
         if (e == 31) print (m ? "nan" : s == 1 ? "inf" : "-inf")
         else if (e == 0) printf "%.9g\n", s * m * 2 ^ -24
         else printf "%.9g\n", s * (1024 + m) * 2 ^ (e - 25) }'
}

# both DTYPE TOLERANCE OUT KERNEL ARGUMENTS...: the tensor OUT of both runs must be the same
both() {
  local dtype=$1 tol=$2 out=$3
  shift 3
  ditron run "$@" --quiet --out "$out=cpu.npy"
  ditron run "$@" --quiet --device "$DEVICE" --out "$out=gpu.npy"
  same "$dtype" "$tol" cpu.npy gpu.npy
}

# table FILE [FILTER]: a row a kernel and shape, each run on the processor and on the GPU, JOBS rows at once (default: as many as there are
# cores, at most 8), each in a folder of its own. Prints a line a row, says what differs, and fails if one did. Rows:
#     TOLERANCE OUT[,OUT...] FILE.py:KERNEL GRID ARGUMENTS...     all tensors OUT must be the same
#     %NAME ARGUMENTS...                                          stands for them in the rows below
# A line that begins with blanks goes on with the one before; # begins a comment.
table() {
  local line words word args failed=0 count=0 texts=() i jobs=${JOBS:-$(nproc)}
  declare -A given
  [ "$jobs" -le 8 ] || jobs=8
  set -f # rows hold brackets
  while IFS= read -r line <&3; do
    words=($line) args=()
    for word in "${words[@]:1}"; do
      if [[ $word == %* ]]; then
        [ -n "${given[$word]+set}" ] || { echo "$1: nothing is called $word"; return 1; }
        args+=(${given[$word]})
      else
        args+=("$word")
      fi
    done
    if [[ ${words[0]} == %* ]]; then
      given[${words[0]}]=${args[*]}
      continue
    fi
    [[ "${words[*]:2}" == *"${2:-}"* ]] || continue
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    rm -rf "row$count" && mkdir "row$count"
    (cd "row$count" && row "${words[0]}" "${args[0]}" "$KERNELS/${args[1]}" "${args[@]:2}" >log 2>&1 && touch same) &
    texts+=("${words[*]:2}")
    count=$((count + 1))
  done 3< <(sed -e 's/#.*//' "$1" | awk '
    /^[ \t]*$/ { next }
    /^[ \t]/ { row = row $0; next }
    { if (row != "") print row; row = $0 }
    END { print row }')
  wait
  set +f
  for ((i = 0; i < count; i++)); do
    if [ -e "row$i/same" ]; then
      echo "same: ${texts[i]}"
    else
      echo "differs: ${texts[i]}"
      head -n 20 "row$i/log" | sed 's/^/    /'
      failed=$((failed + 1))
    fi
    rm -rf "row$i"
  done
  echo "$1: $((count - failed)) of $count the same"
  [ $count -gt 0 ] && [ $failed = 0 ]
}

row() { # TOLERANCE OUTS KERNEL GRID ARGUMENTS...
  local tol=$1 outs=${2//,/ } kernel=$3 grid=$4 out cpu=() gpu=()
  shift 4
  for out in $outs; do
    rm -f "cpu-$out.npy" "gpu-$out.npy"
    cpu+=(--out "$out=cpu-$out.npy")
    gpu+=(--out "$out=gpu-$out.npy")
  done
  ditron run "$kernel" --grid "$grid" "$@" --quiet "${cpu[@]}" || return 1
  ditron run "$kernel" --grid "$grid" "$@" --quiet --device "$DEVICE" "${gpu[@]}" || return 1
  for out in $outs; do
    same "" "$tol" "cpu-$out.npy" "gpu-$out.npy" || { echo "in $out"; return 1; }
  done
}
