// Conversions of 16-bit logits and the packed maximum, in the instructions of each architecture.
#ifndef BILOGP_DEVICE_CUDA_STORAGE_H
#define BILOGP_DEVICE_CUDA_STORAGE_H

#include "device/cuda/machine.h"

namespace canon {

CANON_FN float float_from_half(u16 x) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x));
  return wide;
}
// Round to nearest even; the payload of a NaN is open.
CANON_FN u16 half_from_float(float x) {
  u16 narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow) : "f"(x));
  return narrow;
}
// Two of them in one word, the first one low.
CANON_FN u32 half_pair_from_floats(float low, float high) {
#if __CUDA_ARCH__ >= 800
  u32 pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return (u32)half_from_float(low) | (u32)half_from_float(high) << 16;
#endif
}

CANON_FN u16 bfloat_from_float(float x) {
#if __CUDA_ARCH__ >= 800
  u16 narrow;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow) : "f"(x));
  return narrow;
#else
  const u32 bits = __float_as_uint(x);
  return x != x ? (u16)0x7fc0 : (u16)((bits + (0x7fffu + ((bits >> 16) & 1))) >> 16);
#endif
}
CANON_FN u32 bfloat_pair_from_floats(float low, float high) {
#if __CUDA_ARCH__ >= 800
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return (u32)bfloat_from_float(low) | (u32)bfloat_from_float(high) << 16;
#endif
}

// The larger magnitude of a word's parts; NaN is larger than all. The sign bits of the result mean nothing.
// grown_magnitude is of one float, grown_half_magnitudes and grown_bfloat_magnitudes are of two 16-bit parts.
CANON_FN u32 grown_magnitude(u32 largest, u32 word) {
#if __CUDA_ARCH__ >= 860
  float grown;
  asm("max.NaN.xorsign.abs.f32 %0, %1, %2;" : "=f"(grown) : "f"(__uint_as_float(largest)), "f"(__uint_as_float(word)));
  return __float_as_uint(grown);
#else
  return max(largest, word & 0x7fffffffu);
#endif
}

#if __CUDA_ARCH__ < 800
// The larger of each 16-bit part, without packed instructions.
CANON_FN u32 grown_parts(u32 largest, u32 word) {
  const u32 high = max(largest & 0x7fff0000u, word & 0x7fff0000u), low = max(largest & 0x7fffu, word & 0x7fffu);
  return high | low;
}
#endif

CANON_FN u32 grown_half_magnitudes(u32 largest, u32 word) {
#if __CUDA_ARCH__ >= 860
  u32 grown;
  asm("max.NaN.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(grown) : "r"(largest), "r"(word));
  return grown;
#elif __CUDA_ARCH__ >= 800
  u32 grown;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(grown) : "r"(largest), "r"(word & 0x7fff7fffu));
  return grown;
#else
  return grown_parts(largest, word);
#endif
}

CANON_FN u32 grown_bfloat_magnitudes(u32 largest, u32 word) {
#if __CUDA_ARCH__ >= 860
  u32 grown;
  asm("max.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(grown) : "r"(largest), "r"(word));
  return grown;
#elif __CUDA_ARCH__ >= 800
  u32 grown;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(grown) : "r"(largest), "r"(word & 0x7fff7fffu));
  return grown;
#else
  return grown_parts(largest, word);
#endif
}

} // namespace canon

#endif
