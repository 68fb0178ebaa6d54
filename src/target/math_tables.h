// math_tables: coefficients for lower_math*.c, lowest power first. Each is the polynomial through the Chebyshev nodes of the
// interval given, computed with 60 digits; `error` is the largest deviation from the function before rounding.
#ifndef DITRON_TARGET_MATH_TABLES_H
#define DITRON_TARGET_MATH_TABLES_H

#include <stdint.h>

#include <stdint.h>

// (e^r - 1 - r) / r^2 on [-0.34692, 0.34692], error 6.53e-8
static const double math_exp_f32[] = {0x1.0000000000000p-1, 0x1.5554dc8961859p-3, 0x1.555518f5d1200p-5,
                                      0x1.120be1dcb42dcp-7, 0x1.6d117cc039048p-10};
// (2^r - 1) / r on [-0.5005, 0.5005], error 7.85e-9
static const double math_exp2_f32[] = {0x1.62e4303028fe1p-1, 0x1.ebfbe00e85f67p-3,  0x1.c6af6bb36f1afp-5,
                                       0x1.3b2a529db33f7p-7, 0x1.5f095574716d3p-10, 0x1.44141221f5806p-13};
// (log(1+f) - f + f^2/2) / f^3 on [-0.29289, 0.41421], error 2.88e-8
static const double math_log_f32[] = {0x1.555553e3660dap-2,  -0x1.fffffbeac287ap-3, 0x1.999d5a430bf46p-3,
                                      -0x1.555b4994ad12bp-3, 0x1.23d2196ef7977p-3,  -0x1.fcf4c673064efp-4,
                                      0x1.dea28241d30a8p-4,  -0x1.d635bbe618494p-4, 0x1.1d8ea50b3f8a0p-4};
// (sin(r)/r - 1) / z, z = r^2 on [0.0, 0.61808], error 2.83e-11
static const double math_sin_f32[] = {-0x1.555555545c0fdp-3, 0x1.11110dea5f29ep-7, -0x1.a013a116ee9c5p-13,
                                      0x1.6dbbee63fbd5cp-19};
// (cos(r) - 1 + z/2) / z^2, z = r^2 on [0.0, 0.61808], error 2.36e-12
static const double math_cos_f32[] = {0x1.5555555502261p-5, -0x1.6c16bf51b1490p-10, 0x1.a015c028ae9c5p-16,
                                      -0x1.2522e707282ddp-22};
// (tanh(x)/x - 1) / z, z = x^2 on [0.0, 0.39102], error 1.6e-9
static const double math_tanh_f32[] = {-0x1.555555397c614p-2, 0x1.1110e8eb0e88fp-3,  -0x1.ba08b38d0af0fp-5,
                                       0x1.64a85c3052a27p-6,  -0x1.1162df14d0f22p-7, 0x1.2c630e51b1cd6p-9};
// erf(x) / x - 1 in z = x^2 on [0.0, 1.001], error 3.41e-11
static const double math_erf_f32[] = {0x1.06eba82020a26p-3,  -0x1.81274664f6548p-2, 0x1.ce2f08db3cbf5p-4,
                                      -0x1.b829c4e89400bp-6, 0x1.562a32ba69194p-8,  -0x1.bccd19960475dp-11,
                                      0x1.d878dbc491a8fp-14, -0x1.443bc8889ec91p-17};
// log(erfc(t + 5/2)) on [-1.501, 1.501], error 1.67e-8
static const double math_erfc_f32[] = {-0x1.f3a2dc8691b91p+2, -0x1.569251f61a941p+2,  -0x1.e3460916331e8p-1,
                                       -0x1.63d00f5e569e9p-7, 0x1.1bcf808274c21p-9,   -0x1.b8876dede4fc0p-12,
                                       0x1.442ffa5253afap-14, -0x1.beca56068f1f8p-17, 0x1.b765219e38394p-20};
// (e^r - 1 - r) / r^2 on [-0.34692, 0.34692], error 1.41e-18
static const double math_exp_f64[] = {0x1.0000000000000p-1,  0x1.5555555555557p-3,  0x1.5555555555556p-5,
                                      0x1.11111111100bep-7,  0x1.6c16c16c162c3p-10, 0x1.a01a01abf85abp-13,
                                      0x1.a01a01a6e1e2ap-16, 0x1.71de01fdbf9cap-19, 0x1.27e4db46cddd1p-22,
                                      0x1.af4e554377204p-26, 0x1.1f7340dbc337ep-29};
// (2^r - 1) / r on [-0.5005, 0.5005], error 2.1e-21
static const double math_exp2_f64[] = {0x1.62e42fefa39efp-1,  0x1.ebfbdff82c58fp-3,  0x1.c6b08d704a0c0p-5,
                                       0x1.3b2ab6fba4e7bp-7,  0x1.5d87fe78a6732p-10, 0x1.430912f86ac23p-13,
                                       0x1.ffcbfc5889c87p-17, 0x1.62c0224613675p-20, 0x1.b5253d42075a3p-24,
                                       0x1.e4cf036b19586p-28, 0x1.e8ca8d9985407p-32, 0x1.c4b62f9c6e5bcp-36,
                                       0x1.82197f9570365p-40};
// (log((1+s)/(1-s))/s - 2) / z, z = s^2 on [0.0, 0.02946], error 2.09e-18
static const double math_log_f64[] = {0x1.5555555555555p-1, 0x1.9999999999a38p-2, 0x1.2492492476ab7p-2,
                                      0x1.c71c72019401ap-3, 0x1.745cf8ebf8dcep-3, 0x1.3b1c3a931a599p-3,
                                      0x1.0fbe0a13127a7p-3, 0x1.0c0951618e529p-3};
// (sin(r)/r - 1) / z, z = r^2 on [0.0, 0.61808], error 1.18e-20
static const double math_sin_f64[] = {-0x1.5555555555555p-3, 0x1.1111111111110p-7,   -0x1.a01a01a019926p-13,
                                      0x1.71de3a545e704p-19, -0x1.ae64540f0c1bcp-26, 0x1.61217c18c5ad8p-33,
                                      -0x1.ab161790d481ep-41};
// (cos(r) - 1 + z/2) / z^2, z = r^2 on [0.0, 0.61808], error 6.53e-22
static const double math_cos_f64[] = {0x1.5555555555555p-5,   -0x1.6c16c16c16c16p-10, 0x1.a01a01a019d02p-16,
                                      -0x1.27e4fb7711e1fp-22, 0x1.1eed8de9efaa4p-29,  -0x1.9394b76d752bfp-37,
                                      0x1.ab76cfa136b4ap-45};
// (tanh(x)/x - 1) / z, z = x^2 on [0.0, 0.39102], error 1.47e-19
static const double math_tanh_f64[] = {-0x1.5555555555555p-2,  0x1.111111111110cp-3,   -0x1.ba1ba1ba1afd6p-5,
                                       0x1.664f4882787d5p-6,   -0x1.226e354dbd827p-7,  0x1.d6d3cc4dd516fp-9,
                                       -0x1.7da2fcd5336b4p-10, 0x1.3551fcc4fc8afp-11,  -0x1.f4fc42420d847p-13,
                                       0x1.92d054a6455f0p-14,  -0x1.3704528aef221p-15, 0x1.998705d106e8ap-17,
                                       -0x1.47087a0b2804bp-19};
// erf(x) / x - 1 in z = x^2 on [0.0, 1.001], error 1.32e-19
static const double math_erf_f64[] = {0x1.06eba8214db69p-3,   -0x1.812746b0379e6p-2,  0x1.ce2f21a042b2ep-4,
                                      -0x1.b82ce31284d69p-6,  0x1.565bcd0db9201p-8,   -0x1.c02db3da7b2aep-11,
                                      0x1.f9a321cd05c73p-14,  -0x1.f4d1e26a29ff5p-17, 0x1.b9df193f1fdadp-20,
                                      -0x1.5f1e7c06bb629p-23, 0x1.f7b14dc1f44f0p-27,  -0x1.38925a42dec1ap-30,
                                      0x1.05e163d78b59bp-34};
// log(erfc(5/2 t + 7/2)) on [-1.001, 1.001], error 2.14e-17
static const double math_erfc_f64[] = {
    -0x1.c3991652a25b0p+3,  -0x1.22a4dc1adc4d6p+4,  -0x1.82b383473a63dp+2,  -0x1.4e712f2ed3570p-4,
    0x1.1794772e72816p-5,   -0x1.d75a5652eb74dp-7,  0x1.862e9606bd2a6p-8,   -0x1.372a2152ef1e3p-9,
    0x1.d47dd0aa6a3a6p-11,  -0x1.42c5b173609fap-12, 0x1.7d44526ace8f3p-14,  -0x1.35f2bc26456f8p-16,
    -0x1.8cdbe8b342b03p-20, 0x1.32611f1baad5ap-18,  -0x1.caf894a7e740bp-19, 0x1.0193e43e8c66cp-19,
    -0x1.ecc7e5a7087c5p-21, 0x1.9accd0ce96e09p-22,  -0x1.1425e3aec3dbbp-23, 0x1.df16e0d251aa0p-26,
    -0x1.aa5b29f2c5066p-29, -0x1.f41fba08d6e67p-31, 0x1.4fb935c7c6749p-28,  -0x1.6688b61e34b9ap-28,
    0x1.2c6e93fabf298p-29,  -0x1.60a28997ff625p-32};

// 2/pi times 2^1168, lowest word first.
static const uint64_t math_two_over_pi[] = {
    0x5fb11f8d5d085603u, 0x39f78a5292ea6bfbu, 0xbac7ebe5f17b3d07u, 0x3f669e5fea2d7527u, 0x7ecf27cb09b74f46u,
    0x118b5a0a6d1f6d36u, 0x97ffde05980fef2fu, 0x5f8bbdf9283b1ff8u, 0xd639835339f49c84u, 0x7026b45f7e413991u,
    0x35f52ebb4484e99cu, 0xeb1cb129a73ee882u, 0x2eea09d1921cfe1du, 0x6e3a424dd2e00649u, 0x63abdebbc561b724u,
    0x95993c439041fe51u, 0x57d1f534ddc0db62u, 0x836e4e441529fc27u, 0x000000000000a2f9u, 0x0000000000000000u,
    0x0000000000000000u};

#endif
