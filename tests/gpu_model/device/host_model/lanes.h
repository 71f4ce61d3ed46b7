// Lanes on the host model of a GPU: what device/cuda/lanes.h gives, by ordinary C++.
#ifndef BILOGP_DEVICE_HOST_MODEL_LANES_H
#define BILOGP_DEVICE_HOST_MODEL_LANES_H

#include "canon/arguments.h"

#define CANON_FN static inline
#define CANON_MEMBER inline
#define CANON_COLD static __attribute__((noinline))
#define CANON_SHARED CANON_FN
#define CANON_UNROLL
#define CANON_ROLLED

namespace canon {

template<class F> struct Lanes;

template<> struct Lanes<float> {
  typedef i32 Int;
  typedef u32 UInt;
  typedef double Double;
  CANON_FN float splat(float x) { return x; }
  CANON_FN double widen(float x) { return (double)x; }
  CANON_FN float narrow(double x) { return (float)x; }
  CANON_FN i32 to_int(double x) { return (i32)x; }
};

template<class F> CANON_FN F splat(float x) {
  return Lanes<F>::splat(x);
}
template<class F> CANON_FN typename Lanes<F>::UInt bits_of(F x) {
  return __builtin_bit_cast(typename Lanes<F>::UInt, x);
}
template<class F> CANON_FN F lanes_from_bits(typename Lanes<F>::UInt bits) {
  return __builtin_bit_cast(F, bits);
}
template<class Mask, class T> CANON_FN T select(Mask mask, T a, T b) {
  return mask ? a : b;
}

CANON_FN float fused(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
CANON_FN double fused(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
CANON_FN i32 count_trailing_zeros(u64 value) {
  return __builtin_ctzll(value);
}
CANON_FN i32 count_leading_zeros(u64 value) {
  return __builtin_clzll(value);
}
// A stand-in that errs as a device's does: the same for equal f, and not the contract's polynomial.
CANON_FN float exponential_of_two(float f) {
  return f > 0.0f ? (float)__builtin_exp2((double)f) : 0.5f * (float)__builtin_exp2((double)f + 1.0);
}

} // namespace canon

#endif
