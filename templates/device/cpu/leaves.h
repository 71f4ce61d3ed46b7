// Leaves of several vectors in lockstep: one step of the polynomial for all of them, then the next. In the order of a
// single chain the processor's window holds too few independent steps (1 to 2 % on a quiet core, 10 to 15 % beside a
// busy sibling thread).
#ifndef BILOGP_DEVICE_CPU_LEAVES_H
#define BILOGP_DEVICE_CPU_LEAVES_H

#include "canon/leaf.h"

// vscalefps multiplies by a power of two as ldexp does: it overflows to infinity and underflows to zero, and raises
// the exception flags of MXCSR then. Elsewhere the exponent is added to the bits, which wrap.
#if defined(__AVX512F__)
#define BILOGP_SCALEF 1
#else
#define BILOGP_SCALEF 0
#endif

namespace canon {

#if BILOGP_SCALEF
constexpr i32 stream_reference = 0;
constexpr int lockstep = 8; // vectors; with their exponents and constants they fill the 32 registers
constexpr int groups_unrolled = 1;

// Keeps the compiler from going back to the order of chains.
template<int Count> CANON_FN void hold(FloatLanes* v) {
  CANON_UNROLLED
  for (int i = 0; i < Count; ++i) asm volatile("" : "+v"(v[i]));
}

template<int Count> CANON_FN void next_power(FloatLanes* q, const FloatLanes* f, float coefficient) {
  CANON_UNROLLED
  for (int i = 0; i < Count; ++i) q[i] = fused(q[i], f[i], splat<FloatLanes>(coefficient));
  hold<Count>(q);
}

// x -> its p in q, its n as a float in n; x is used up.
template<int Count>
CANON_FN void leaf_steps(FloatLanes* x, FloatLanes c, FloatLanes magic, FloatLanes* q, FloatLanes* n) {
  CANON_UNROLLED
  for (int i = 0; i < Count; ++i) q[i] = fused(x[i], c, magic);
  hold<Count>(q);
  CANON_UNROLLED
  for (int i = 0; i < Count; ++i) n[i] = q[i] - magic;
  hold<Count>(n);
  CANON_UNROLLED
  for (int i = 0; i < Count; ++i) x[i] = fused(x[i], c, -n[i]);
  CANON_UNROLLED
  for (int i = 0; i < Count; ++i) q[i] = fused(splat<FloatLanes>(poly_5), x[i], splat<FloatLanes>(poly_4));
  hold<Count>(q);
  next_power<Count>(q, x, poly_3);
  next_power<Count>(q, x, poly_2);
  next_power<Count>(q, x, poly_1);
  next_power<Count>(q, x, 1.0f);
}

// x -> p * 2^n.
template<int Count> CANON_FN void stream_leaves(FloatLanes* x, float scale) {
  FloatLanes q[Count], n[Count];
  leaf_steps<Count>(x, splat<FloatLanes>(scale), splat<FloatLanes>(round_magic), q, n);
  CANON_UNROLLED
  for (int i = 0; i < Count; ++i) x[i] = __builtin_ia32_scalefps512_mask(q[i], n[i], FloatLanes{}, (u16)-1, 4);
}
#else
constexpr i32 stream_reference = 6;
constexpr int lockstep = 1; // sixteen registers hold no more: any width costs spills, and 5 to 10 % of the speed
constexpr int groups_unrolled = 4;

// x -> p * 2^(n - stream_reference).
template<int Count> CANON_FN void stream_leaves(FloatLanes* x, float c) {
  CANON_UNROLLED
  for (int i = 0; i < Count; ++i)
    x[i] = leaf_scaled(x[i], splat<FloatLanes>(c), splat<FloatLanes>(round_magic - (float)stream_reference));
}
#endif

} // namespace canon

#endif
