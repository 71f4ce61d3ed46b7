// From a row's sum to its results: logp per target id, and lse.
#ifndef BILOGP_CANON_FINISH_H
#define BILOGP_CANON_FINISH_H

#include "canon/leaf.h"
#include "canon/log2.h"
#include "canon/node.h"

namespace canon {

CANON_FN float lse_of(Node sum) {
  if (is_poison(sum)) return quiet_nan();
  if (is_zero(sum)) return negative_infinity;
  return (float)(((double)sum.E + log2_canon((double)sum.m)) * inverse_log2_e);
}

// logp of a target inside the vocabulary whose logit is `x`; the row's sum decides about poison and empty rows.
CANON_FN float logp_of(Node sum, float x, const Scale& scale) {
  if (is_poison(sum) || is_zero(sum)) return quiet_nan();
  if (x == negative_infinity) return negative_infinity;
  float p;
  i32 n;
  leaf_pair<float>(x, scale, p, n);
  double d = (double)(n - sum.E) + log2_canon((double)p / (double)sum.m);
  if (x < -scale.bound && sum.E > n + 40) d = ((double)x * (double)scale.c - (double)sum.E) - log2_canon((double)sum.m);
  return (float)(d * inverse_log2_e);
}

} // namespace canon

#endif
