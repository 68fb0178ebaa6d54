// imports: the functions that loaded CPU code may call (imports.def), and conversions of narrow floats that compilers
// call where the processor has no instruction for them.
#include "image/image_impl.h"

#include <math.h>

// Narrow floats travel in the low half-word of a vector register; _Float16 is the C type that does.
typedef union Half {
  _Float16 f;
  uint16_t bits;
} Half;
static float extend_half(_Float16 h) { return f16_to_f32((Half){.f = h}.bits); }
static double extend_half_double(_Float16 h) { return (double)f16_to_f32((Half){.f = h}.bits); }
static _Float16 truncate_half(float f) { return (Half){.bits = f16_from_f32(f)}.f; }
static _Float16 truncate_half_double(double d) { return (Half){.bits = f16_from_f64(d)}.f; }
static _Float16 truncate_bf16(float f) { return (Half){.bits = bf16_from_f32(f)}.f; }
// Rounding twice is wrong only where the first lands on a tie of the second: keep it off by rounding to odd.
static _Float16 truncate_bf16_double(double d) {
  union {
    float f;
    uint32_t u;
  } x = {.f = (float)d};
  if (isfinite(d) && (double)x.f != d) {
    if (fabs((double)x.f) > fabs(d)) x.u--; // towards zero
    x.u |= 1;
  }
  return (Half){.bits = bf16_from_f32(x.f)}.f;
}

extern __int128 __divti3(__int128, __int128);
extern __int128 __modti3(__int128, __int128);
extern unsigned __int128 __udivti3(unsigned __int128, unsigned __int128);
extern unsigned __int128 __umodti3(unsigned __int128, unsigned __int128);

const ImageSymbol image_cpu_symbols[] = {
#define IMPORT(name) {#name, (const void *)(uintptr_t)name},
#define MATH(name) {#name, (const void *)(uintptr_t)name}, {#name "f", (const void *)(uintptr_t)name##f},
#include "image/imports.def"
#undef IMPORT
#undef MATH
    {"bcmp", (const void *)(uintptr_t)memcmp},
    {"__divti3", (const void *)(uintptr_t)__divti3},
    {"__modti3", (const void *)(uintptr_t)__modti3},
    {"__udivti3", (const void *)(uintptr_t)__udivti3},
    {"__umodti3", (const void *)(uintptr_t)__umodti3},
    {"__extendhfsf2", (const void *)(uintptr_t)extend_half},
    {"__extendhfdf2", (const void *)(uintptr_t)extend_half_double},
    {"__truncsfhf2", (const void *)(uintptr_t)truncate_half},
    {"__truncdfhf2", (const void *)(uintptr_t)truncate_half_double},
    {"__truncsfbf2", (const void *)(uintptr_t)truncate_bf16},
    {"__truncdfbf2", (const void *)(uintptr_t)truncate_bf16_double},
};
const uint32_t image_ncpu_symbols = DT_COUNTOF(image_cpu_symbols);
