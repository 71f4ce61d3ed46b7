// Constants and words of the contract (CONTRACT.md), shared by every device.
//
// The device's lanes.h defines how a function is declared (CANON_FN, CANON_MEMBER, CANON_COLD,
// CANON_SHARED: one copy where code is dear, CANON_ROLLED) and,
// for each lane type F (one float, or a vector of floats), Lanes<F>::Int, ::UInt and ::Double, fused(a, b, c) =
// RN32(a*b + c), splat<F>(x), bits_of, lanes_from_bits and select(mask, a, b); further count_trailing_zeros(u64),
// count_leading_zeros(u64) of what is not 0, and, on a device with native numerics, exponential_of_two(f).
#ifndef BILOGP_CANON_NUMBERS_H
#define BILOGP_CANON_NUMBERS_H

#include "canon/constants.h"

#if defined(BILOGP_DEVICE_CPU)
#include "device/cpu/lanes.h"
#elif defined(BILOGP_DEVICE_CUDA)
#include "device/cuda/lanes.h"
#elif defined(BILOGP_DEVICE_HOST_MODEL)
#include "device/host_model/lanes.h" // of tests/gpu_model
#else
#error "name the device: BILOGP_DEVICE_CPU, BILOGP_DEVICE_CUDA or BILOGP_DEVICE_HOST_MODEL"
#endif

// What a leaf's value is: 0 portable, the contract's; 1 native, from the device's own exponential.
#ifndef BILOGP_NUMERICS
#define BILOGP_NUMERICS 0
#endif

namespace canon {

CANON_FN float float_from_bits(u32 bits) {
  return __builtin_bit_cast(float, bits);
}
CANON_FN u32 bits_from_float(float value) {
  return __builtin_bit_cast(u32, value);
}
CANON_FN float quiet_nan() {
  return float_from_bits(nan_bits);
}
// 2^k for k in [-126, 127].
CANON_FN float power_of_two(i32 k) {
  return float_from_bits((u32)(k + 127) << 23);
}

// What a row's temperature makes of the formulas.
struct Scale {
  float c;         // exponent in base 2 per unit of logit
  float inverse_t; // iT, used by the gradient only
  float bound;     // B: logits are clamped to [-B, B]
  bool is_one;     // T = 1
  bool valid;      // else the row is poisoned
};

CANON_SHARED Scale scale_of(float temperature) {
  Scale s;
  s.valid = temperature >= temperature_min && temperature <= temperature_max;
  s.is_one = temperature == 1.0f;
  s.c = log2_e;
  s.inverse_t = 1.0f;
  if (s.valid && !s.is_one) { // binary64 divisions are dear on some devices
    s.c = (float)(log2_e_wide / (double)temperature);
    s.inverse_t = (float)(1.0 / (double)temperature);
  }
  // The largest power of two below 2^30 / c: c is in [2^e, 2^(e+1)).
  const i32 e = (i32)(bits_from_float(s.c) >> 23) - 127;
  s.bound = power_of_two(e > 0 ? 29 - e : 29);
  return s;
}

} // namespace canon

#endif
