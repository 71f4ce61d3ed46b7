// Lanes on a CPU: sixteen floats at a time, which the compiler cuts into the machine's own registers (one of AVX-512,
// two of AVX2, four of SSE and NEON), and one float for the few scalars of a row.
#ifndef BILOGP_DEVICE_CPU_LANES_H
#define BILOGP_DEVICE_CPU_LANES_H

#include "canon/arguments.h"

#define CANON_FN static inline __attribute__((always_inline))
#define CANON_MEMBER inline __attribute__((always_inline))
#define CANON_COLD static __attribute__((noinline))
#define CANON_SHARED CANON_COLD
#define CANON_ROLLED                                      // a loop that a GPU should not unroll
#define CANON_UNROLLED _Pragma("clang loop unroll(full)") // over registers

#if defined(__x86_64__) && !defined(__FMA__)
#define BILOGP_SOFTWARE_FMA 1
#else
#define BILOGP_SOFTWARE_FMA 0
#endif

namespace canon {

CANON_FN i32 count_trailing_zeros(u64 value) {
  return __builtin_ctzll(value);
}
CANON_FN i32 count_leading_zeros(u64 value) {
  return __builtin_clzll(value);
}

constexpr int lane_count = 16;
typedef float FloatLanes __attribute__((vector_size(64)));
typedef i32 IntLanes __attribute__((vector_size(64)));
typedef u32 UIntLanes __attribute__((vector_size(64)));
typedef double DoubleLanes __attribute__((vector_size(128)));
typedef u16 HalfLanes __attribute__((vector_size(32)));
typedef u16 PairLanes __attribute__((vector_size(64))); // 32 columns of a 16-bit type

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

template<> struct Lanes<FloatLanes> {
  typedef IntLanes Int;
  typedef UIntLanes UInt;
  typedef DoubleLanes Double;
  // Not `FloatLanes{} + x`, which would turn -0 into +0.
  CANON_FN FloatLanes splat(float x) { return FloatLanes{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
  CANON_FN DoubleLanes widen(FloatLanes x) { return __builtin_convertvector(x, DoubleLanes); }
  CANON_FN FloatLanes narrow(DoubleLanes x) { return __builtin_convertvector(x, FloatLanes); }
  CANON_FN IntLanes to_int(DoubleLanes x) { return __builtin_convertvector(x, IntLanes); }
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

// A vector comparison gives all ones or all zeros per lane, a scalar one a bool; ?: takes both.
template<class Mask, class T> CANON_FN T select(Mask mask, T a, T b) {
  return mask ? a : b;
}

} // namespace canon

#if BILOGP_SOFTWARE_FMA
#include "device/cpu/software_fma.h"
#else
namespace canon {
CANON_FN FloatLanes fused(FloatLanes a, FloatLanes b, FloatLanes c) {
  return __builtin_elementwise_fma(a, b, c);
}
CANON_FN float fused(float a, float b, float c) {
  return __builtin_elementwise_fma(a, b, c);
}

} // namespace canon
#endif

#endif
