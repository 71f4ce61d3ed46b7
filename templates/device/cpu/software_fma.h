// Fused multiply-adds for machines without them, by binary64.
//
// Two ways. fused_quad serves any operands. The leaf's polynomial is quicker: the exponent of each of its steps is
// known, so that adding and taking away a power of two rounds the exact product and its addend to 24 bits at once.
#ifndef BILOGP_DEVICE_CPU_SOFTWARE_FMA_H
#define BILOGP_DEVICE_CPU_SOFTWARE_FMA_H

#include "canon/constants.h"

namespace canon {

typedef float QuadFloat __attribute__((vector_size(16)));
typedef double QuadDouble __attribute__((vector_size(32)));
typedef i64 QuadLong __attribute__((vector_size(32)));

CANON_FN QuadDouble widened(QuadFloat x) {
  return __builtin_convertvector(x, QuadDouble);
}
CANON_FN QuadFloat narrowed(QuadDouble x) {
  return __builtin_convertvector(x, QuadFloat);
}

// RN32(a*b + c): the product is exact in binary64, the sum is rounded to odd there (its error by TwoSum), and rounding
// an odd-rounded 53-bit value to 24 bits is the right rounding (Boldo and Melquiond, 2008). Not inlined: code
// generation would take seconds.
CANON_COLD QuadFloat fused_quad(QuadFloat a, QuadFloat b, QuadFloat c) {
  const QuadDouble product = widened(a) * widened(b), addend = widened(c);
  const QuadDouble sum = product + addend;
  const QuadDouble back = sum - product;
  const QuadDouble error = (product - (sum - back)) + (addend - back);
  QuadLong bits = __builtin_bit_cast(QuadLong, sum);
  const QuadLong error_bits = __builtin_bit_cast(QuadLong, error);
  const QuadLong away = ((QuadLong)(bits < 0) ^ (QuadLong)(error_bits < 0)) | 1; // +1: grow the magnitude, -1: shrink
  const QuadLong inexact_even = (QuadLong)(error != 0.0) & ((bits & 1) - 1);
  bits += away & inexact_even;
  return narrowed(__builtin_bit_cast(QuadDouble, bits));
}

// Adding this rounds what lies in [2^exponent, 2^(exponent + 1)) to 24 bits.
constexpr double rounder_of(int exponent) {
  double r = 1.5;
  for (int i = 0; i < 52 - 23 + exponent; ++i) r *= 2.0;
  return r;
}

// RN24(q * f + coefficient), where that lies in [2^Exponent, 2^(Exponent + 1)] whatever f is.
template<int Exponent> CANON_FN QuadDouble next_step(QuadDouble q, QuadDouble f, double coefficient) {
  constexpr double rounder = rounder_of(Exponent);
  return (q * f + (coefficient + rounder)) - rounder;
}

// The leaf's polynomial for |f| <= 0.5 of 24 bits.
CANON_FN QuadDouble polynomial_in_double(QuadDouble f) {
  QuadDouble q = next_step<-7>(QuadDouble{} + (double)poly_5, f, poly_4);
  q = next_step<-5>(q, f, poly_3);
  // On both sides of 1/4. Above, the sum is exact: f is no less than 1/8 there.
  constexpr double rounder = rounder_of(-2);
  const QuadDouble sum = q * f + (double)poly_2;
  q = sum >= 0.25 ? (sum + rounder) - rounder : next_step<-3>(q, f, poly_2);
  q = next_step<-1>(q, f, poly_1);
  // On both sides of 1, as the sign of f says.
  const QuadDouble below = QuadDouble{} + rounder_of(-1), above = QuadDouble{} + rounder_of(0);
  const QuadDouble last = f < 0.0 ? below : above;
  return (q * f + (last + 1.0)) - last;
}

struct FourQuads {
  QuadFloat quad[4];
};

// One piece of code for all places: each takes a hundred instructions.
CANON_COLD FloatLanes fused(const FloatLanes& a, const FloatLanes& b, const FloatLanes& c) {
  const FourQuads x = __builtin_bit_cast(FourQuads, a), y = __builtin_bit_cast(FourQuads, b),
                  z = __builtin_bit_cast(FourQuads, c);
  FourQuads r;
#pragma clang loop unroll(disable)
  for (int i = 0; i < 4; ++i) r.quad[i] = fused_quad(x.quad[i], y.quad[i], z.quad[i]);
  return __builtin_bit_cast(FloatLanes, r);
}
CANON_FN float fused(float a, float b, float c) {
  return fused_quad(QuadFloat{a, a, a, a}, QuadFloat{b, b, b, b}, QuadFloat{c, c, c, c})[0];
}

// These two stand in for the templates of canon/leaf.h.
CANON_COLD FloatLanes leaf_polynomial(const FloatLanes& f) {
  FourQuads quads = __builtin_bit_cast(FourQuads, f);
#pragma clang loop unroll(disable)
  for (QuadFloat& quad : quads.quad) quad = narrowed(polynomial_in_double(widened(quad)));
  return __builtin_bit_cast(FloatLanes, quads);
}

CANON_COLD FloatLanes leaf_scaled(const FloatLanes& x, const FloatLanes& c, const FloatLanes& magic) {
  FourQuads quads = __builtin_bit_cast(FourQuads, x);
  const double scale = c[0], rounder = round_magic_wide - ((double)round_magic - (double)magic[0]);
#pragma clang loop unroll(disable)
  for (QuadFloat& quad : quads.quad) {
    const QuadDouble product = widened(quad) * scale; // exact: 24 by 24 bits
    const QuadDouble rounded = product + rounder;
    const QuadDouble f = widened(narrowed(product - (rounded - rounder)));
    const QuadLong power = __builtin_bit_cast(QuadLong, rounded) << 52;
    quad = narrowed(__builtin_bit_cast(QuadDouble, __builtin_bit_cast(QuadLong, polynomial_in_double(f)) + power));
  }
  return __builtin_bit_cast(FloatLanes, quads);
}

} // namespace canon

#endif
