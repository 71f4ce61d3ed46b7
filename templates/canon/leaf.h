// The leaf of one column: p * 2^n for a logit x, in the two forms that kernels need.
#ifndef BILOGP_CANON_LEAF_H
#define BILOGP_CANON_LEAF_H

#include "canon/numbers.h"

namespace canon {

// p(f), close to 2^f for f in [-0.5, 0.5].
template<class F> CANON_FN F leaf_polynomial(F f) {
  F q = fused(splat<F>(poly_5), f, splat<F>(poly_4));
  q = fused(q, f, splat<F>(poly_3));
  q = fused(q, f, splat<F>(poly_2));
  q = fused(q, f, splat<F>(poly_1));
  return fused(q, f, splat<F>(1.0f));
}

// The leaf's value beside its power of two. In native numerics it depends on f alone too, so that tiles, shards and
// references R still do not show.
template<class F> CANON_FN F leaf_value(F f) {
#if BILOGP_NUMERICS == 1
  return exponential_of_two(f);
#else
  return leaf_polynomial(f);
#endif
}

// p * 2^(n - R) as one binary32. `magic` is round_magic - R. Exact for |x| * c <= 2^21, |x| <= B, |R| <= 2^20 and
// n - R in [-125, 126]; outside of that the bits wrap and the caller must throw the result away. `rounded` is
// round_magic + (n - R), and below that of any of these for logits below all of these.
template<class F> CANON_FN F leaf_scaled(F x, F c, F magic, F& rounded) {
  rounded = fused(x, c, magic);
  const F f = fused(x, c, -(rounded - magic));
  return lanes_from_bits<F>(bits_of(leaf_value(f)) + (bits_of(rounded) << 23));
}

template<class F> CANON_FN F leaf_scaled(F x, F c, F magic) {
  F rounded;
  return leaf_scaled(x, c, magic, rounded);
}

// (p, n) of every finite or -inf x; a zero leaf is (+0.0, zero_exponent). NaN and +inf are the caller's to find.
template<class F> CANON_FN void leaf_pair(F x, const Scale& scale, F& p, typename Lanes<F>::Int& n) {
  typedef typename Lanes<F>::Int Int;
  typedef typename Lanes<F>::Double Double;
  F clamped = x < splat<F>(-scale.bound) ? splat<F>(-scale.bound) : x;
  clamped = clamped > splat<F>(scale.bound) ? splat<F>(scale.bound) : clamped;
  const Double product = Lanes<F>::widen(clamped) * (double)scale.c; // exact: 24 by 24 bits
  const Double rounded = (product + round_magic_wide) - round_magic_wide;
  const F f = Lanes<F>::narrow(product - rounded);
  const auto is_zero = x == splat<F>(negative_infinity);
  p = select(is_zero, splat<F>(0.0f), leaf_value(f));
  n = select(is_zero, (Int)(Int{} + zero_exponent), Lanes<F>::to_int(rounded));
}

} // namespace canon

#endif
