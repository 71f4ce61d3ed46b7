// 32-bit words of logits, as the Hopper plans hold them: two columns of a 16-bit type, or one float. The same few
// operations for each storage type, on all columns of a word at once.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_WORDS_H
#define BILOGP_DEVICE_CUDA_HOPPER_WORDS_H

#include "canon/leaf.h"
#include "device/cuda/hopper/packed.h"
#include "rows/device.h"

namespace canon {

template<class S> struct Words;

// What the 16-bit types share.
template<class Operations> struct PackedWords : Operations {
  static constexpr int columns = 2;
  static constexpr u32 pattern_count = 0x10000u, sign = 0x8000u;
  CANON_FN u32 largest_column(u32 word) { return word >> 16 > (word & 0xffffu) ? word >> 16 : word & 0xffffu; }
  CANON_FN u32 largest_pattern(u32 magnitudes) { return largest_column(magnitudes & 0x7fff7fffu); }
  CANON_FN u32 in_all_columns(u32 pattern) { return pattern * 0x10001u; }
  CANON_FN u32 add_then_max(u32 word, u32 addend, u32 running) { return add_then_max_of_halves(word, addend, running); }
  CANON_FN bool column_equals(u32 word, int k, u32 pattern) {
    return (k == 0 ? word & 0xffffu : word >> 16) == pattern;
  }
};

template<> struct Words<Bfloat16> : PackedWords<PackedBfloat16> {
  static constexpr u32 minus_infinity = 0xff80u;
  CANON_FN float column(u32 word, int k) { return float_from_bits(k == 0 ? word << 16 : word & 0xffff0000u); }
  CANON_FN float value(u32 pattern) { return float_from_bits(pattern << 16); }
  // Toward zero, for a finite f.
  CANON_FN u32 truncated(float f) { return bits_from_float(f) >> 16; }
};

template<> struct Words<Float16> : PackedWords<PackedFloat16> {
  static constexpr u32 minus_infinity = 0xfc00u;
  CANON_FN float column(u32 word, int k) { return k == 0 ? value(word & 0xffffu) : value(word >> 16); }
  CANON_FN float value(u32 pattern) { return float_from_half((u16)pattern); }
  CANON_FN u32 truncated(float f) { return truncated_half(f); }
};

template<> struct Words<Float32> : OneFloat {
  static constexpr int columns = 1;
  static constexpr u32 pattern_count = 0; // 2^32
  static constexpr u32 sign = 0x80000000u, minus_infinity = 0xff800000u;
  CANON_FN float column(u32 word, int) { return float_from_bits(word); }
  CANON_FN float value(u32 pattern) { return float_from_bits(pattern); }
  CANON_FN u32 truncated(float f) { return bits_from_float(f); }
  CANON_FN u32 packed(float first, float) { return bits_from_float(first); }
  CANON_FN u32 largest_pattern(u32 magnitudes) { return magnitudes & 0x7fffffffu; }
  CANON_FN u32 in_all_columns(u32 pattern) { return pattern; }
  CANON_FN u32 add_then_max(u32 word, u32 addend, u32 running) {
    const u32 sum = word + addend;
    return sum > running ? sum : running;
  }
  CANON_FN u32 largest_column(u32 word) { return word; }
  CANON_FN bool column_equals(u32 word, int, u32 pattern) { return word == pattern; }
};

// Columns from `live` on become -inf; the word's first column is `column`.
template<class S> CANON_FN u32 cut_word(u32 word, int column, int live) {
  constexpr u32 masked = Words<S>::minus_infinity;
  if constexpr (Words<S>::columns == 1) return column < live ? word : masked;
  if (column + 1 < live) return word;
  return column < live ? (word & 0xffffu) | (masked << 16) : masked * 0x10001u;
}

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
