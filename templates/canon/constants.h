// Constants of the contract (CONTRACT.md).
#ifndef BILOGP_CANON_CONSTANTS_H
#define BILOGP_CANON_CONSTANTS_H

#include "canon/arguments.h"
#if defined(BILOGP_DEVICE_CUDA)
#include "device/cuda/bit_cast.h"
#endif

namespace canon {

constexpr float log2_e = 0x1.715476p+0f;             // L: the base of every exponential is 2^L
constexpr double log2_e_wide = 0x1.71547652b82fep+0; // numerator of c at other temperatures
constexpr double inverse_log2_e = 1.0 / 0x1.715476p+0;
constexpr float poly_1 = 0x1.62e42ap-1f, poly_2 = 0x1.ebf9bap-3f, poly_3 = 0x1.c6b69ap-5f, poly_4 = 0x1.3ceaf8p-7f,
                poly_5 = 0x1.5bfd58p-10f;
constexpr float round_magic = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer, ties to even
constexpr i32 round_magic_bits = 0x4b400000;
constexpr double round_magic_wide = 6755399441055744.0; // 1.5 * 2^52
constexpr float temperature_min = 0x1p-20f, temperature_max = 0x1p20f;

constexpr u32 nan_bits = 0x7fc00000u;
constexpr u32 inf_bits = 0x7f800000u;
#if !defined(BILOGP_NO_CONSTANT_BIT_CAST)
constexpr float negative_infinity = __builtin_bit_cast(float, 0xff800000u);
#endif

// Exponent of a zero inside the kernels: below every real one, and far enough from the ends of i32 for differences.
constexpr i32 zero_exponent = -0x60000000;
constexpr i32 zero_exponent_stored = -0x7fffffff - 1;
// Below this difference of exponents a smaller summand is absorbed whatever its value.
constexpr i32 absorbed = -100;
// A gradient's leaf this far below the row's sum is +0.0.
constexpr i32 gradient_floor = -99;

} // namespace canon

#endif
