// The gradient of logp with respect to the logits, scaled by the row's upstream gradient g.
#ifndef BILOGP_CANON_GRADIENT_H
#define BILOGP_CANON_GRADIENT_H

#include "canon/leaf.h"
#include "canon/node.h"

namespace canon {

// gi: what every column but the target multiplies its probability's numerator by.
CANON_FN float gradient_factor(float g, Node sum, const Scale& scale) {
  const float inverse_m = 1.0f / sum.m;
  const float gi = -(g * inverse_m);
  return scale.is_one ? gi : gi * scale.inverse_t;
}

// Whether gradient_near serves this row, and the `low` it takes. Roundings here move `low` by less than one in the
// exponent, of the ten between it and the gradient's floor.
CANON_FN bool is_near(Node sum, const Scale& scale, float& low) {
  if (sum.E > 0x100000 || sum.E < -0x100000) return false;
  low = (float)(sum.E - 110) / scale.c;
  return low >= -scale.bound && (float)(sum.E + 2) < scale.bound * scale.c;
}

// Gradient of one column from its pair (p, n); +0.0 where the leaf is zero or far, whatever the factor is.
template<class F> CANON_FN F gradient_from_pair(F p, typename Lanes<F>::Int n, i32 E, F factor) {
  typedef typename Lanes<F>::Int Int;
  typedef typename Lanes<F>::UInt UInt;
  const Int floor = Int{} + (E + gradient_floor);
  const Int shift = (n > floor ? n : floor) - E;
  const F value = lanes_from_bits<F>(bits_of(p) + ((UInt)shift << 23)) * factor;
  return select(n >= floor, value, splat<F>(0.0f));
}

// The same straight from logits, for rows where |x * c| stays below 2^21 once x is raised to `low`, a logit whose leaf
// is beyond the gradient's floor, and no logit reaches the bound B.
template<class F> CANON_FN F gradient_near(F x, F c, F low, i32 E, F factor) {
  typedef typename Lanes<F>::Int Int;
  typedef typename Lanes<F>::UInt UInt;
  const F raised = x > low ? x : low;
  const F rounded = fused(raised, c, splat<F>(round_magic));
  const F f = fused(raised, c, -(rounded - splat<F>(round_magic)));
  const Int shift = (Int)bits_of(rounded) - (round_magic_bits + E);
  const F value = lanes_from_bits<F>(bits_of(leaf_value(f)) + ((UInt)shift << 23)) * factor;
  return select(shift >= (Int)(Int{} + gradient_floor), value, splat<F>(0.0f));
}

// At the target, where 1 - p keeps its digits.
CANON_FN float gradient_at_target(float g, float x, Node sum, const Scale& scale) {
  float p;
  i32 n;
  leaf_pair<float>(x, scale, p, n);
  double share = 0.0;
  const i32 shift = n - sum.E;
  if (p != 0.0f && shift >= -1000) {
    const double power = __builtin_bit_cast(double, (u64)(shift + 1023) << 52);
    share = ((double)p * power) / (double)sum.m;
  }
  const double d = (double)g * (1.0 - share);
  return scale.is_one ? (float)d : (float)(d * (double)scale.inverse_t);
}

} // namespace canon

#endif
