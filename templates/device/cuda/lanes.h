// Lanes on a CUDA device: each thread is one lane, a float its vector. No header of the toolkit is needed: NVRTC and
// nvcc know these functions by themselves.
#ifndef BILOGP_DEVICE_CUDA_LANES_H
#define BILOGP_DEVICE_CUDA_LANES_H

#include "canon/arguments.h"

#define CANON_FN static __device__ __forceinline__
#define CANON_MEMBER __device__ __forceinline__
#define CANON_COLD static __device__ __noinline__
#define CANON_SHARED static __device__ __noinline__
// Before a loop: all of it in a row, or never (compiling takes longest where it is unrolled).
#define CANON_UNROLL _Pragma("unroll")
#define CANON_ROLLED _Pragma("unroll 1")

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
  return __fmaf_rn(a, b, c);
}
CANON_FN double fused(double a, double b, double c) {
  return __fma_rn(a, b, c);
}

CANON_FN i32 count_trailing_zeros(u64 value) {
  return __ffsll((long long)value) - 1;
}
CANON_FN i32 count_leading_zeros(u64 value) {
  return __clzll((long long)value);
}

// About 2^f for f in [-0.5, 0.5], the same for equal f on one architecture; the native numerics' leaf.
CANON_FN float exponential_of_two(float f) {
  float value;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(f));
  return value;
}

} // namespace canon

#endif
