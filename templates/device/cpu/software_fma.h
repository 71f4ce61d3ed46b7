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

// 2^52 as the compiler cannot see it, or it would make slow blends of two constants of what is an addition.
CANON_FN QuadLong exponent_step() {
  i64 step = (i64)1 << 52;
  asm("" : "+r"(step));
  return QuadLong{} + step;
}

// rounder_of(Exponent + n), where `steps` is n times exponent_step.
template<int Exponent> CANON_FN QuadDouble rounder_beside(QuadLong steps) {
  constexpr double rounder = rounder_of(Exponent);
  return __builtin_bit_cast(QuadDouble, __builtin_bit_cast(QuadLong, QuadDouble{} + rounder) + steps);
}

// The leaf's polynomial for |f| <= 0.5 of 24 bits.
CANON_FN QuadDouble polynomial_in_double(QuadDouble f, QuadLong step) {
  constexpr double reaches_quarter = 0x1.5e15acp-3; // the least f of 24 bits with q * f + poly_2 >= 1/4
  constexpr double last_of_poly_2 = 0x1p-26;
  QuadDouble q = next_step<-7>(QuadDouble{} + (double)poly_5, f, poly_4);
  q = next_step<-5>(q, f, poly_3);
  // Above 1/4 the last bit of poly_2 is no multiple of the rounder's, so that it is added first (exactly, or to a
  // product of less than 2^-31, which cannot turn the result).
  const QuadDouble at_quarter = rounder_beside<-3>((QuadLong)(f >= reaches_quarter) & step);
  q = ((q * f + last_of_poly_2) + (at_quarter + ((double)poly_2 - last_of_poly_2))) - at_quarter;
  q = next_step<-1>(q, f, poly_1);
  // Below 1 for negative f: the sign bit, where the exponent's last one is.
  const QuadDouble at_one = rounder_beside<0>(-((__builtin_bit_cast(QuadLong, f) >> 11) & step));
  return (q * f + (at_one + 1.0)) - at_one;
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
  const QuadLong step = exponent_step();
#pragma clang loop unroll(disable)
  for (QuadFloat& quad : quads.quad) quad = narrowed(polynomial_in_double(widened(quad), step));
  return __builtin_bit_cast(FloatLanes, quads);
}

// What a leaf_scaled keeps for all of its quads.
struct LeafSteps {
  double c, rounder; // adding the latter rounds to an integer and adds n - R + bias to the low bits
  QuadLong step;

  CANON_MEMBER LeafSteps(float scale, float magic)
      : c(scale), rounder(round_magic_wide - ((double)round_magic - (double)magic) + bias), step(exponent_step()) {}
  // What the exponents of binary32 and binary64 differ by, modulo 2^9.
  static constexpr double bias = 127 - 1023;

  CANON_MEMBER QuadFloat leaf(QuadFloat x, QuadDouble& rounded) const {
    const QuadDouble product = widened(x) * c; // exact: 24 by 24 bits
    rounded = product + rounder;
    const QuadDouble f = widened(narrowed(product - (rounded - rounder)));
    // p has 24 bits and a known sign: its upper bits, moved, are those of a binary32 but for the exponent's bias.
    const QuadLong p = __builtin_bit_cast(QuadLong, polynomial_in_double(f, step)) >> 29;
    return __builtin_bit_cast(QuadFloat, low_words(p) + (low_words(__builtin_bit_cast(QuadLong, rounded)) << 23));
  }
  // round_magic + (n - R).
  CANON_MEMBER QuadFloat integers(QuadDouble rounded) const {
    return narrowed(rounded - (round_magic_wide + bias - (double)round_magic));
  }

  typedef u32 QuadWord __attribute__((vector_size(16)));
  static CANON_MEMBER QuadWord low_words(QuadLong v) {
    typedef u32 EightWords __attribute__((vector_size(32)));
    const EightWords words = __builtin_bit_cast(EightWords, v);
    return __builtin_shufflevector(words, words, 0, 2, 4, 6);
  }
};

CANON_COLD FloatLanes leaf_scaled(const FloatLanes& x, const FloatLanes& c, const FloatLanes& magic) {
  FourQuads quads = __builtin_bit_cast(FourQuads, x);
  const LeafSteps steps(c[0], magic[0]);
#pragma clang loop unroll(disable)
  for (QuadFloat& quad : quads.quad) {
    QuadDouble rounded;
    quad = steps.leaf(quad, rounded);
  }
  return __builtin_bit_cast(FloatLanes, quads);
}

CANON_COLD FloatLanes leaf_scaled(const FloatLanes& x, const FloatLanes& c, const FloatLanes& magic,
                                  FloatLanes& rounded) {
  FourQuads quads = __builtin_bit_cast(FourQuads, x), integers;
  const LeafSteps steps(c[0], magic[0]);
#pragma clang loop unroll(disable)
  for (int i = 0; i < 4; ++i) {
    QuadDouble wide;
    quads.quad[i] = steps.leaf(quads.quad[i], wide);
    integers.quad[i] = steps.integers(wide);
  }
  rounded = __builtin_bit_cast(FloatLanes, integers);
  return __builtin_bit_cast(FloatLanes, quads);
}

} // namespace canon

#endif
