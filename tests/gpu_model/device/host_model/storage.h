// Conversions of 16-bit logits on the host model, by integers.
#ifndef BILOGP_DEVICE_HOST_MODEL_STORAGE_H
#define BILOGP_DEVICE_HOST_MODEL_STORAGE_H

#include "device/host_model/machine.h"

namespace canon {

CANON_FN float float_from_half(u16 x) {
  const u32 sign = (x & 0x8000u) << 16, body = (x & 0x7fffu) << 13;
  u32 bits = body + 0x38000000u;
  if (body >= 0x0f800000u) bits += 0x38000000u; // infinity and NaN
  if (body < 0x00800000u)
    bits = __builtin_bit_cast(u32, __builtin_bit_cast(float, body + 0x38800000u) - 0x1p-14f); // subnormal
  return __builtin_bit_cast(float, bits | sign);
}
CANON_FN u16 half_from_float(float x) {
  const u32 bits = __builtin_bit_cast(u32, x), sign = (bits >> 16) & 0x8000u, body = bits & 0x7fffffffu;
  u32 half;
  if (body > 0x7f800000u)
    half = 0x7fffu; // as devices do
  else if (body >= 0x47800000u)
    half = 0x7c00u;
  else if (body < 0x38800000u)
    half = __builtin_bit_cast(u32, __builtin_bit_cast(float, body) + 0.5f) - 0x3f000000u;
  else
    half = (body + (0xc8000fffu + ((body >> 13) & 1u))) >> 13;
  return (u16)(half | sign);
}
CANON_FN u32 half_pair_from_floats(float low, float high) {
  return (u32)half_from_float(low) | (u32)half_from_float(high) << 16;
}

CANON_FN u16 bfloat_from_float(float x) {
  const u32 bits = __builtin_bit_cast(u32, x);
  return x != x ? (u16)0x7fff : (u16)((bits + (0x7fffu + ((bits >> 16) & 1))) >> 16);
}
CANON_FN u32 bfloat_pair_from_floats(float low, float high) {
  return (u32)bfloat_from_float(low) | (u32)bfloat_from_float(high) << 16;
}

// With a sign that means nothing, as on a device.
CANON_FN u32 grown_magnitude(u32 largest, u32 word) {
  const u32 a = largest & 0x7fffffffu, b = word & 0x7fffffffu;
  return (a > b ? a : b) | ((largest ^ word) & 0x80000000u);
}
CANON_FN u32 grown_half_magnitudes(u32 largest, u32 word) {
  const u32 high = grown_magnitude(largest & 0xffff0000u, word & 0xffff0000u);
  return high | grown_magnitude(largest << 16, word << 16) >> 16;
}
CANON_FN u32 grown_bfloat_magnitudes(u32 largest, u32 word) {
  return grown_half_magnitudes(largest, word);
}

} // namespace canon

#endif
