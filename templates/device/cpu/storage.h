// Logits in memory: how each storage type is read into lanes and how a gradient is written back.
//
// A group is what one vector of the tree's first sums stands for: sixteen neighbouring columns, or, for bfloat16,
// thirty-two, whose even and odd columns are split by a shift and a mask so that the first level of the tree is a
// plain add.
#ifndef BILOGP_DEVICE_CPU_STORAGE_H
#define BILOGP_DEVICE_CPU_STORAGE_H

#include "canon/numbers.h"
#include "device/cpu/machine.h"

namespace canon {

template<class V> struct UnalignedVector {
  typedef V type __attribute__((aligned(1), may_alias));
};
template<class V> CANON_FN V load_vector(const void* address) {
  return *(const typename UnalignedVector<V>::type*)address;
}
template<class V> CANON_FN void store_vector(void* address, V value) {
  *(typename UnalignedVector<V>::type*)address = value;
}

struct Float32 {
  typedef float Stored;
  static constexpr int group_columns = 16, group_vectors = 1;
  typedef UIntLanes Magnitude;
  CANON_FN float widen(float x) { return x; }
  CANON_FN float narrow(float x) { return x != x ? quiet_nan() : x; }
  CANON_FN void read(const float* p, FloatLanes* x) { x[0] = load_vector<FloatLanes>(p); }
  CANON_FN Magnitude magnitude(const float* p) { return load_vector<UIntLanes>(p) & 0x7fffffffu; }
  // Largest magnitude that does not exceed `limit`, in stored bits.
  CANON_FN u32 magnitude_limit(float limit) { return bits_from_float(limit); }
  CANON_FN void write(float* p, const FloatLanes* y) { store_vector(p, y[0]); }
};

struct Bfloat16 {
  typedef u16 Stored;
  static constexpr int group_columns = 32, group_vectors = 2;
  typedef PairLanes Magnitude;
  CANON_FN float widen(u16 x) { return float_from_bits((u32)x << 16); }
  CANON_FN u16 narrow(float x) {
    const u32 bits = bits_from_float(x);
    return x != x ? (u16)0x7fc0 : (u16)((bits + (0x7fffu + ((bits >> 16) & 1))) >> 16);
  }
  CANON_FN void read(const u16* p, FloatLanes* x) {
    const UIntLanes both = load_vector<UIntLanes>(p);
    x[0] = lanes_from_bits<FloatLanes>(both << 16);
    x[1] = lanes_from_bits<FloatLanes>(both & 0xffff0000u);
  }
  CANON_FN Magnitude magnitude(const u16* p) { return load_vector<PairLanes>(p) & (u16)0x7fff; }
  CANON_FN u32 magnitude_limit(float limit) { return bits_from_float(limit) >> 16; }
  // Rounded to nearest even, in the upper half of each lane.
  CANON_FN UIntLanes rounded(FloatLanes y) {
    const UIntLanes bits = bits_of(y);
    const UIntLanes up = bits + (((bits >> 16) & 1u) + 0x7fffu);
    return select(y != y, (UIntLanes)(UIntLanes{} + 0x7fc00000u), up);
  }
  CANON_FN void write(u16* p, const FloatLanes* y) {
    store_vector(p, (rounded(y[0]) >> 16) | (rounded(y[1]) & 0xffff0000u));
  }
};

struct Float16 {
  typedef u16 Stored;
  static constexpr int group_columns = 16, group_vectors = 1;
  typedef HalfLanes Magnitude;
#if defined(__F16C__) || defined(__aarch64__)
  typedef _Float16 HalfFloatLanes __attribute__((vector_size(32)));
  CANON_FN FloatLanes widen_lanes(HalfLanes h) {
    return __builtin_convertvector(__builtin_bit_cast(HalfFloatLanes, h), FloatLanes);
  }
  CANON_FN HalfLanes narrow_lanes(FloatLanes y) {
    return __builtin_bit_cast(HalfLanes, __builtin_convertvector(y, HalfFloatLanes));
  }
#else
  // By integers, exact for every input.
  CANON_FN FloatLanes widen_lanes(HalfLanes h) {
    const UIntLanes u = __builtin_convertvector(h, UIntLanes);
    const UIntLanes sign = (u & 0x8000u) << 16, body = (u & 0x7fffu) << 13;
    const UIntLanes special = select(body >= 0x0f800000u, (UIntLanes)(UIntLanes{} + 0x38000000u), UIntLanes{});
    const UIntLanes normal = body + 0x38000000u + special;
    const UIntLanes subnormal = bits_of(lanes_from_bits<FloatLanes>(body + 0x38800000u) - 0x1p-14f);
    return lanes_from_bits<FloatLanes>(select(body < 0x00800000u, subnormal, normal) | sign);
  }
  CANON_FN HalfLanes narrow_lanes(FloatLanes y) {
    const UIntLanes bits = bits_of(y), sign = (bits >> 16) & 0x8000u, body = bits & 0x7fffffffu;
    const UIntLanes normal = (body + (0xc8000fffu + ((body >> 13) & 1u))) >> 13;
    const UIntLanes subnormal = bits_of(lanes_from_bits<FloatLanes>(body) + 0.5f) - 0x3f000000u;
    const UIntLanes special =
        select(body > 0x7f800000u, (UIntLanes)(UIntLanes{} + 0x7e00u), (UIntLanes)(UIntLanes{} + 0x7c00u));
    const UIntLanes finite = select(body < 0x38800000u, subnormal, normal);
    return __builtin_convertvector(select(body >= 0x47800000u, special, finite) | sign, HalfLanes);
  }
#endif
  CANON_FN float widen(u16 x) { return widen_lanes(HalfLanes{x})[0]; }
  CANON_FN u16 narrow(float x) { return x != x ? (u16)0x7e00 : narrow_lanes(FloatLanes{x})[0]; }
  CANON_FN void read(const u16* p, FloatLanes* x) { x[0] = widen_lanes(load_vector<HalfLanes>(p)); }
  CANON_FN Magnitude magnitude(const u16* p) { return load_vector<HalfLanes>(p) & (u16)0x7fff; }
  CANON_FN u32 magnitude_limit(float limit) {
    if (limit >= 65504.0f) return 0x7bff;
    const u16 nearest = narrow(limit);
    return widen(nearest) > limit ? nearest - 1u : nearest;
  }
  CANON_FN void write(u16* p, const FloatLanes* y) { store_vector(p, narrow_lanes(y[0])); }
};

} // namespace canon

#endif
