// Logits in memory: how each storage type is read into lanes and how a gradient is written back.
//
// A group is what one vector of the tree's first sums stands for: sixteen neighbouring columns, or, for the types of
// sixteen bits, thirty-two, whose even and odd columns are split so that the first level of the tree is a plain add.
//
//   unpack          words of a group -> its logits; even columns first, then odd ones
//   unpack_scaled   the same times 1 / unpacked_scale, where that is quicker
//   read, write     logits and gradients of a group, in an order of the type's own
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

#if defined(__AVX512BW__)
// Per lane of 32 bits: low half of `a` times low half of `b` plus high half times high half, signed.
CANON_FN UIntLanes products(PairLanes a, u32 b) {
  typedef short Shorts __attribute__((vector_size(64)));
  return (UIntLanes)__builtin_ia32_pmaddwd512((Shorts)a, (Shorts)(UIntLanes{} + b));
}
#endif

// A vector that begins at a line of memory, past the caches: a gradient is not read again before much else has been.
template<class V> CANON_FN void store_past_cache(void* address, V value) {
  typedef i64 Words __attribute__((vector_size(sizeof(V))));
  Words words = __builtin_bit_cast(Words, value);
#if defined(__AVX512F__)
  asm("" : "+v"(words)); // else the compiler drops the hint on vectors that were made of 16-bit floats
#endif
  __builtin_nontemporal_store(words, (Words*)address);
}
template<class V> CANON_FN void store_gradient(void* address, V value, bool past_cache) {
  if (past_cache)
    store_past_cache(address, value);
  else
    store_vector(address, value);
}

// What is known of the gradients that are to be written.
enum class Values { any, numbers, normal_numbers };

struct Float32 {
  typedef float Stored;
  static constexpr int group_columns = 16, group_vectors = 1;
  typedef u32 Word;
  typedef UIntLanes Words;
  typedef IntLanes SignedWords;
  static constexpr u32 sign_bit = 0x80000000u, infinity = 0x7f800000u;
  CANON_FN float widen(float x) { return x; }
  CANON_FN float narrow(float x) { return x != x ? quiet_nan() : x; }
  static constexpr bool shuns_subnormals = false;
  static constexpr float unpacked_scale = 1.0f;
  CANON_FN void unpack(Words words, FloatLanes* x) { x[0] = lanes_from_bits<FloatLanes>(words); }
  CANON_FN void unpack_scaled(Words words, FloatLanes* x) { unpack(words, x); }
  CANON_FN void read(const float* p, FloatLanes* x) { x[0] = load_vector<FloatLanes>(p); }
  // Largest magnitude that does not exceed `limit`, in stored bits.
  CANON_FN u32 magnitude_limit(float limit) { return bits_from_float(limit); }
  template<Values> CANON_FN void write(float* p, const FloatLanes* y, bool past_cache) {
    store_gradient(p, y[0], past_cache);
  }
};

struct Bfloat16 {
  typedef u16 Stored;
  static constexpr int group_columns = 32, group_vectors = 2;
  typedef u16 Word;
  typedef PairLanes Words;
  typedef short SignedWords __attribute__((vector_size(64)));
  static constexpr u32 sign_bit = 0x8000u, infinity = 0x7f80u;
  CANON_FN float widen(u16 x) { return float_from_bits((u32)x << 16); }
  CANON_FN u16 narrow(float x) {
    const u32 bits = bits_from_float(x);
    return x != x ? (u16)0x7fc0 : (u16)((bits + (0x7fffu + ((bits >> 16) & 1))) >> 16);
  }
  static constexpr bool shuns_subnormals = false;
  static constexpr float unpacked_scale = 1.0f;
  CANON_FN void unpack(Words words, FloatLanes* x) {
    const UIntLanes both = __builtin_bit_cast(UIntLanes, words);
    x[0] = lanes_from_bits<FloatLanes>(both << 16);
    x[1] = lanes_from_bits<FloatLanes>(both & 0xffff0000u);
  }
  CANON_FN void unpack_scaled(Words words, FloatLanes* x) { unpack(words, x); }
  CANON_FN void read(const u16* p, FloatLanes* x) { unpack(load_vector<Words>(p), x); }
  CANON_FN u32 magnitude_limit(float limit) { return bits_from_float(limit) >> 16; }
  // Rounded to nearest even, in the upper half of each lane.
  template<Values Known> CANON_FN UIntLanes rounded(FloatLanes y) {
    const UIntLanes bits = bits_of(y);
    const UIntLanes up = bits + (((bits >> 16) & 1u) + 0x7fffu);
    if constexpr (Known != Values::any) return up;
    return select(y != y, (UIntLanes)(UIntLanes{} + 0x7fc00000u), up);
  }
  template<Values Known> CANON_FN PairLanes packed_by_integers(const FloatLanes* y) {
    return __builtin_bit_cast(PairLanes, (rounded<Known>(y[0]) >> 16) | (rounded<Known>(y[1]) & 0xffff0000u));
  }
#if defined(__AVX512BF16__)
  // The instruction takes subnormal values for zeros.
  template<Values Known> CANON_FN PairLanes packed(const FloatLanes* y) {
    if constexpr (Known != Values::normal_numbers) return packed_by_integers<Known>(y);
    const PairLanes halves = __builtin_bit_cast(PairLanes, __builtin_ia32_cvtne2ps2bf16_512(y[1], y[0]));
    return __builtin_shufflevector(halves, halves, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25,
                                   10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
#else
  template<Values Known> CANON_FN PairLanes packed(const FloatLanes* y) { return packed_by_integers<Known>(y); }
#endif
  template<Values Known> CANON_FN void write(u16* p, const FloatLanes* y, bool past_cache) {
    store_gradient(p, packed<Known>(y), past_cache);
  }
};

struct Float16 {
  typedef u16 Stored;
  typedef u16 Word;
  static constexpr u32 sign_bit = 0x8000u, infinity = 0x7c00u, smallest_normal = 0x0400u;
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
#if defined(__AVX512BW__)
  static constexpr int group_columns = 32, group_vectors = 2;
  typedef PairLanes Words;
  typedef short SignedWords __attribute__((vector_size(64)));
  CANON_FN void unpack(Words words, FloatLanes* x) {
    const UIntLanes both = __builtin_bit_cast(UIntLanes, words);
    x[0] = widen_lanes(__builtin_convertvector(both & 0xffffu, HalfLanes));
    x[1] = widen_lanes(__builtin_convertvector(both >> 16, HalfLanes));
  }
  // A product moves sign, exponent and fraction to where binary32 has them, but for the exponent's bias. Subnormal
  // logits become subnormal, which costs more than a hundred cycles each in arithmetic.
  static constexpr bool shuns_subnormals = true;
  static constexpr float unpacked_scale = 0x1p112f;
  CANON_FN void unpack_scaled(Words words, FloatLanes* x) {
    const UIntLanes even = products(words, 0x2000u), odd = products(words, 0x20000000u);
    x[0] = lanes_from_bits<FloatLanes>(even & 0x8fffffffu);
    x[1] = lanes_from_bits<FloatLanes>(odd & 0x8fffffffu);
  }
  CANON_FN void read(const u16* p, FloatLanes* x) {
    x[0] = widen_lanes(load_vector<HalfLanes>(p));
    x[1] = widen_lanes(load_vector<HalfLanes>(p + 16));
  }
  template<Values> CANON_FN void write(u16* p, const FloatLanes* y, bool past_cache) {
    const HalfLanes low = narrow_lanes(y[0]), high = narrow_lanes(y[1]);
    store_gradient(p,
                   __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
                                           19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31),
                   past_cache);
  }
#else
  static constexpr int group_columns = 16, group_vectors = 1;
  typedef HalfLanes Words;
  typedef short SignedWords __attribute__((vector_size(32)));
  static constexpr bool shuns_subnormals = false;
  static constexpr float unpacked_scale = 1.0f;
  CANON_FN void unpack(Words words, FloatLanes* x) { x[0] = widen_lanes(words); }
  CANON_FN void unpack_scaled(Words words, FloatLanes* x) { unpack(words, x); }
  CANON_FN void read(const u16* p, FloatLanes* x) { unpack(load_vector<Words>(p), x); }
  template<Values> CANON_FN void write(u16* p, const FloatLanes* y, bool past_cache) {
    store_gradient(p, narrow_lanes(y[0]), past_cache);
  }
#endif
  CANON_FN u32 magnitude_limit(float limit) {
    if (limit >= 65504.0f) return 0x7bff;
    const u16 nearest = narrow(limit);
    return widen(nearest) > limit ? nearest - 1u : nearest;
  }
};

} // namespace canon

#endif
