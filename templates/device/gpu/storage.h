// Logits in memory as sixteen-byte vectors: how each storage type is read, checked and written.
#ifndef BILOGP_DEVICE_GPU_STORAGE_H
#define BILOGP_DEVICE_GPU_STORAGE_H

#include "device/gpu/warp.h"
#if defined(BILOGP_DEVICE_CUDA)
#include "device/cuda/storage.h"
#else
#include "device/host_model/storage.h"
#endif

namespace canon {

// In all three: `column(v, i)` widens column i of a vector, `pack` is its inverse for a word; grown() keeps the largest
// magnitude of words in stored bits, and within() tells whether it is at most `limit`. NaN is above every limit.
struct Float32 {
  typedef float Stored;
  static constexpr int vector_level = 2, vector_columns = 4, word_columns = 1;
  CANON_FN float widen(float x) { return x; }
  CANON_FN float narrow(float x) { return x != x ? quiet_nan() : x; }
  CANON_FN u32 stored_bits(float x) { return bits_from_float(x); }
  CANON_FN float column(const Vector& v, int i) { return float_from_bits(v.word[i]); }
  CANON_FN u32 pack(const float* y) { return bits_from_float(y[0]); }
  CANON_FN u32 grown(u32 largest, u32 word) { return grown_magnitude(largest, word); }
  CANON_FN u32 magnitude_limit(float limit) { return bits_from_float(limit); }
  CANON_FN bool within(u32 largest, u32 limit) { return (largest & 0x7fffffffu) <= limit; }
};

CANON_FN bool halves_within(u32 largest, u32 limit) {
  return ((largest >> 16) & 0x7fffu) <= limit && (largest & 0x7fffu) <= limit;
}

struct Bfloat16 {
  typedef u16 Stored;
  static constexpr int vector_level = 3, vector_columns = 8, word_columns = 2;
  CANON_FN float widen(u16 x) { return float_from_bits((u32)x << 16); }
  CANON_FN u16 narrow(float x) { return x != x ? (u16)0x7fc0 : bfloat_from_float(x); }
  CANON_FN u32 stored_bits(u16 x) { return x; }
  CANON_FN float column(const Vector& v, int i) {
    const u32 word = v.word[i / 2];
    return float_from_bits(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
  }
  CANON_FN u32 pack(const float* y) { return bfloat_pair_from_floats(y[0], y[1]); }
  CANON_FN u32 grown(u32 largest, u32 word) { return grown_bfloat_magnitudes(largest, word); }
  CANON_FN u32 magnitude_limit(float limit) { return bits_from_float(limit) >> 16; }
  CANON_FN bool within(u32 largest, u32 limit) { return halves_within(largest, limit); }
};

struct Float16 {
  typedef u16 Stored;
  static constexpr int vector_level = 3, vector_columns = 8, word_columns = 2;
  CANON_FN float widen(u16 x) { return float_from_half(x); }
  CANON_FN u16 narrow(float x) { return x != x ? (u16)0x7e00 : half_from_float(x); }
  CANON_FN u32 stored_bits(u16 x) { return x; }
  CANON_FN float column(const Vector& v, int i) {
    const u32 word = v.word[i / 2];
    return float_from_half((u16)(i % 2 == 0 ? word : word >> 16));
  }
  CANON_FN u32 pack(const float* y) { return half_pair_from_floats(y[0], y[1]); }
  CANON_FN u32 grown(u32 largest, u32 word) { return grown_half_magnitudes(largest, word); }
  CANON_FN u32 magnitude_limit(float limit) {
    if (limit >= 65504.0f) return 0x7bff;
    const u16 nearest = half_from_float(limit);
    return float_from_half(nearest) > limit ? nearest - 1u : nearest;
  }
  CANON_FN bool within(u32 largest, u32 limit) { return halves_within(largest, limit); }
};

} // namespace canon

#endif
