// 32-bit words of logits, as the Hopper plans hold them: two columns of a 16-bit type, or one float. The same few
// operations for each storage type, on all columns of a word at once.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_WORDS_H
#define BILOGP_DEVICE_CUDA_HOPPER_WORDS_H

#include "canon/leaf.h"
#include "rows/device.h"

namespace canon {

template<class S> struct Words;

// What the 16-bit types share: PTX names the two packed types alike but for a suffix.
#define BILOGP_PACKED_WORDS(suffix)                                                                                    \
  static constexpr int columns = 2;                                                                                    \
  CANON_FN u32 larger(u32 a, u32 b) {                                                                                  \
    u32 r;                                                                                                             \
    asm("max." suffix " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                                                      \
    return r;                                                                                                          \
  }                                                                                                                    \
  CANON_FN u32 smaller(u32 a, u32 b) {                                                                                 \
    u32 r;                                                                                                             \
    asm("min." suffix " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                                                      \
    return r;                                                                                                          \
  }                                                                                                                    \
  CANON_FN u32 larger_or_nan(u32 a, u32 b) {                                                                           \
    u32 r;                                                                                                             \
    asm("max.NaN." suffix " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                                                  \
    return r;                                                                                                          \
  }                                                                                                                    \
  /* The larger magnitude or NaN; its sign means nothing. */                                                           \
  CANON_FN u32 larger_magnitude(u32 a, u32 b) {                                                                        \
    u32 r;                                                                                                             \
    asm("max.NaN.xorsign.abs." suffix " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                                      \
    return r;                                                                                                          \
  }                                                                                                                    \
  CANON_FN u32 largest_pattern(u32 magnitudes) {                                                                       \
    const u32 m = magnitudes & 0x7fff7fffu;                                                                            \
    return m >> 16 > (m & 0xffffu) ? m >> 16 : m & 0xffffu;                                                            \
  }                                                                                                                    \
  CANON_FN u32 in_all_columns(u32 pattern) {                                                                           \
    return pattern * 0x10001u;                                                                                         \
  }                                                                                                                    \
  CANON_FN u32 add_then_max(u32 word, u32 addend, u32 running) {                                                       \
    u32 r;                                                                                                             \
    asm("{\n\t.reg .b32 sum;\n\tadd.u16x2 sum, %1, %2;\n\tmax.u16x2 %0, sum, %3;\n\t}"                                 \
        : "=r"(r)                                                                                                      \
        : "r"(word), "r"(addend), "r"(running));                                                                       \
    return r;                                                                                                          \
  }                                                                                                                    \
  CANON_FN u32 largest_column(u32 word) {                                                                              \
    return word >> 16 > (word & 0xffffu) ? word >> 16 : word & 0xffffu;                                                \
  }                                                                                                                    \
  static constexpr u32 pattern_count = 0x10000u, sign = 0x8000u, minus_infinity = in_place_minus_infinity;             \
  /* Columns from `live` on become -inf; the word's first column is `column`. */                                       \
  CANON_FN u32 cut(u32 word, int column, int live) {                                                                   \
    if (column + 1 < live) return word;                                                                                \
    return column < live ? (word & 0xffffu) | (minus_infinity << 16) : minus_infinity * 0x10001u;                      \
  }                                                                                                                    \
  CANON_FN bool column_equals(u32 word, int k, u32 pattern) {                                                          \
    return (k == 0 ? word & 0xffffu : word >> 16) == pattern;                                                          \
  }

template<> struct Words<Bfloat16> {
  static constexpr u32 in_place_minus_infinity = 0xff80u;
  BILOGP_PACKED_WORDS("bf16x2")
  CANON_FN float column(u32 word, int k) { return float_from_bits(k == 0 ? word << 16 : word & 0xffff0000u); }
  CANON_FN float value(u32 pattern) { return float_from_bits(pattern << 16); }
  // Toward zero, for a finite f.
  CANON_FN u32 truncated(float f) { return bits_from_float(f) >> 16; }
  CANON_FN u32 packed(float low, float high) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
  }
};

template<> struct Words<Float16> {
  static constexpr u32 in_place_minus_infinity = 0xfc00u;
  BILOGP_PACKED_WORDS("f16x2")
  CANON_FN float column(u32 word, int k) { return k == 0 ? value(word & 0xffffu) : value(word >> 16); }
  CANON_FN float value(u32 pattern) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"((u16)pattern));
    return f;
  }
  CANON_FN u32 truncated(float f) {
    u16 h;
    asm("cvt.rz.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
  }
  CANON_FN u32 packed(float low, float high) {
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
  }
};

template<> struct Words<Float32> {
  static constexpr int columns = 1;
  static constexpr u32 pattern_count = 0; // 2^32
  static constexpr u32 sign = 0x80000000u, minus_infinity = 0xff800000u;
  CANON_FN float column(u32 word, int) { return float_from_bits(word); }
  CANON_FN float value(u32 pattern) { return float_from_bits(pattern); }
  CANON_FN u32 truncated(float f) { return bits_from_float(f); }
  CANON_FN u32 packed(float first, float) { return bits_from_float(first); }
  CANON_FN u32 larger(u32 a, u32 b) {
    float r;
    asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(float_from_bits(a)), "f"(float_from_bits(b)));
    return bits_from_float(r);
  }
  CANON_FN u32 smaller(u32 a, u32 b) {
    float r;
    asm("min.f32 %0, %1, %2;" : "=f"(r) : "f"(float_from_bits(a)), "f"(float_from_bits(b)));
    return bits_from_float(r);
  }
  CANON_FN u32 larger_or_nan(u32 a, u32 b) {
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(float_from_bits(a)), "f"(float_from_bits(b)));
    return bits_from_float(r);
  }
  CANON_FN u32 larger_magnitude(u32 a, u32 b) {
    float r;
    asm("max.NaN.xorsign.abs.f32 %0, %1, %2;" : "=f"(r) : "f"(float_from_bits(a)), "f"(float_from_bits(b)));
    return bits_from_float(r);
  }
  CANON_FN u32 largest_pattern(u32 magnitudes) { return magnitudes & 0x7fffffffu; }
  CANON_FN u32 in_all_columns(u32 pattern) { return pattern; }
  CANON_FN u32 add_then_max(u32 word, u32 addend, u32 running) {
    const u32 sum = word + addend;
    return sum > running ? sum : running;
  }
  CANON_FN u32 largest_column(u32 word) { return word; }
  CANON_FN u32 cut(u32 word, int column, int live) { return column < live ? word : minus_infinity; }
  CANON_FN bool column_equals(u32 word, int, u32 pattern) { return word == pattern; }
};

// The smallest stored pattern whose value is not below f.
template<class S> CANON_FN u32 pattern_above(float f) {
  u32 pattern = Words<S>::truncated(f);
  if (Words<S>::value(pattern) < f) pattern += 1;
  return pattern;
}

// The largest stored pattern of a negative number whose value is not above f.
template<class S> CANON_FN u32 pattern_below(float f) {
  u32 pattern = Words<S>::truncated(f);
  if (Words<S>::value(pattern) > f) pattern += 1;
  return pattern;
}

// Whether all columns lie between the patterns `first` and `last` of two numbers of one sign, first <= last, or are one
// of them: an interval of unsigned numbers that subtracting its begin moves to the bottom of the range.
template<class S> struct Range {
  u32 near, addend, limit;
  CANON_MEMBER Range(u32 first, u32 last) : near(first), limit(last - first) {
    addend = Words<S>::in_all_columns((0u - near) & (Words<S>::pattern_count - 1));
  }
  CANON_MEMBER u32 look(u32 word, u32 running) const { return Words<S>::add_then_max(word, addend, running); }
  CANON_MEMBER bool holds(u32 running) const { return Words<S>::largest_column(running) <= limit; }
};

// Whether no column lies strictly between the patterns `near` and `far` of two negative numbers, near > far. As
// unsigned numbers those patterns are an interval; adding what moves its end to the top of the range makes one maximum
// tell.
template<class S> struct Gap {
  u32 addend, limit;
  CANON_MEMBER Gap(u32 near, u32 far) {
    limit = Words<S>::pattern_count - far + near;
    addend = Words<S>::in_all_columns(Words<S>::pattern_count - far);
  }
  CANON_MEMBER u32 look(u32 word, u32 running) const { return Words<S>::add_then_max(word, addend, running); }
  CANON_MEMBER bool is_free(u32 running) const { return Words<S>::largest_column(running) <= limit; }
};

} // namespace canon

#endif
