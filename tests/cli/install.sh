# What `make install` puts down serves a C and a C++ program outside the tree, and the run time alone needs no LLVM.
# TIMEOUT: 400
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
here=$PWD
build=${BUILD#"$ROOT"/} # as the Makefile likes it
make -s -C "$ROOT" BUILD="$build" PREFIX=/opt/ditron DESTDIR="$here/d" install
root=$here/d/opt/ditron
for f in include/ditron/ditron.h lib/libditron.a lib/libditron.so lib/libditron-rt.a lib/libditron-rt.so \
  lib/pkgconfig/ditron.pc lib/pkgconfig/ditron-rt.pc bin/ditron share/ditron/kernels; do
  test -e "$root/$f" || { echo "not installed: $f"; exit 1; }
done
if grep -rl "$ROOT" "$root/lib/pkgconfig" "$root/include"; then
  echo "the installed text names the folder of the sources"
  exit 1
fi

cat >rt.c <<'C'
#define DT_UNSTABLE
#include <ditron/ditron.h>
#include <stdio.h>
int main(void) {
  dt_context *c;
  if (dt_context_create(NULL, &c) != DT_OK) return 1;
  printf("%s %s\n", dt_version(), dt_kernels_dir(c));
  dt_context_destroy(c);
  return 0;
}
C
cat >full.cc <<'C'
#include <ditron/ditron.h>
#include <cstdio>
#include <cstring>
int main() {
  dt_context *c;
  if (dt_context_create(nullptr, &c) != DT_OK) return 1;
  const char *text = "import triton\nimport triton.language as tl\n@triton.jit\ndef k(p):\n    tl.store(p, 1.0)\n";
  dt_image *im = nullptr;
  float out = 0;
  const dt_named args[] = {{"p", dt_ptr(DT_F32, &out)}};
  dt_status s = dt_compile_text(c, "k.py", text, std::strlen(text), "k", args, 1, nullptr, &im);
  if (s != DT_OK) std::printf("%s\n", dt_error(c));
  else std::printf("compiled %s\n", dt_image_kernel_name(im, 0));
  if (im) dt_image_destroy(im);
  dt_context_destroy(c);
  return s;
}
C
export PKG_CONFIG_PATH=$root/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$here/d LD_LIBRARY_PATH=$root/lib
gcc -Wall -Wextra -Werror -std=c11 rt.c -o rt $(pkg-config --cflags --libs ditron-rt)
g++ -Wall -Wextra -Werror -std=c++17 full.cc -o full $(pkg-config --cflags --libs ditron)
gcc rt.c -o rt-static $(pkg-config --cflags ditron-rt) "$root/lib/libditron-rt.a" -pthread -ldl -lm
./rt | tee rt.out
test "$(realpath "$(cut -d' ' -f2 rt.out)")" = "$root/share/ditron/kernels"
./rt-static | grep -q "^[0-9]"
./full | tee full.out
grep -q "^compiled k" full.out

# the run time carries no compiler, and the compiler brings its LLVM along unseen
for f in rt rt-static "$root/lib/libditron-rt.so"; do
  if ldd "$f" | grep -iE 'llvm|tree-sitter|libditron\.so'; then exit 1; fi
done
if ldd "$root/lib/libditron.so" | grep -iE 'llvm|tree-sitter|stdc'; then exit 1; fi
"$root/bin/ditron" info >/dev/null
