// Logarithms close to the contract's, by which a row's results are found without its divisions: what the contract says
// lies within a known distance, and where all of that rounds to one binary32, that is the result. Elsewhere (one in a
// million, and results near 0) the definition is worked out.
#ifndef BILOGP_DEVICE_GPU_CLOSE_LOG2_H
#define BILOGP_DEVICE_GPU_CLOSE_LOG2_H

#include "canon/numbers.h"

namespace canon {

// log2(x) for a binary32 x in [0.5, 2], to 2^-49: as log2_canon, but with a reciprocal for the quotient, the first nine
// terms of the series, and these added up by pairs.
CANON_SHARED double close_log2(float x) {
  constexpr float sqrt_2 = 0x1.6a09e6p+0f, sqrt_half = 0x1.6a09e6p-1f;
  const float e = x > sqrt_2 ? 1.0f : x < sqrt_half ? -1.0f : 0.0f;
  const double z = (double)(e > 0.0f ? x * 0.5f : e < 0.0f ? x * 2.0f : x);
  const double u = (z - 1.0) * (1.0 / (z + 1.0));
  const double w = u * u, w2 = w * w, w4 = w2 * w2;
  const double a0 = fused(w, 1.0 / 3, 1.0), a1 = fused(w, 1.0 / 7, 1.0 / 5);
  const double a2 = fused(w, 1.0 / 11, 1.0 / 9), a3 = fused(w, 1.0 / 15, 1.0 / 13);
  const double b0 = fused(w2, a1, a0), b1 = fused(w2, a3, a2);
  const double q = fused(w4 * w4, 1.0 / 17, fused(w4, b1, b0));
  return fused(0x1.71547652b82fep+1 * u, q, (double)e);
}

// The binary32 that every d within reach of the contract's gives; false where there are two. Its own roundings and
// these logarithms' errors stay below 2^-48 + 2^-51 |d|.
CANON_FN bool one_result(double d, float& result) {
  const double reach = fused(d < 0.0 ? -d : d, 0x1p-48, 0x1p-46);
  const float low = (float)((d - reach) * inverse_log2_e), high = (float)((d + reach) * inverse_log2_e);
  result = low;
  return bits_from_float(low) == bits_from_float(high);
}

} // namespace canon

#endif
