// A lane's span: 128 bytes of neighbouring columns, eight vectors of four words. A tile is one span for each lane of a
// warp.
//
// The vectors are read from shared memory in the order j ^ (lane & 7), which has no bank conflicts and, siblings
// staying siblings, leaves the tree as it is. All adds of a span stay in one lane.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_SPAN_H
#define BILOGP_DEVICE_CUDA_HOPPER_SPAN_H

#include "device/cuda/hopper/leaf_table.h"

namespace canon {

constexpr int vector_words = 4, span_vectors = 8, span_words = 32;
constexpr u32 span_bytes = 128, tile_bytes = 4096;

template<class S> struct TileShape {
  static constexpr int vector_columns = vector_words * Words<S>::columns;
  static constexpr int span_columns = span_words * Words<S>::columns;
  static constexpr int columns = 32 * span_columns;
  static constexpr int level = Words<S>::columns == 2 ? 11 : 10; // log2 of the columns
};

// Address from which a lane reads vector j as `^ (j << 4)`; tiles are aligned to 128 bytes.
CANON_FN u32 span_address(u32 tile, u32 lane) {
  return (tile + lane * span_bytes) | ((lane & 7) << 4);
}

CANON_FN float tree_of_8(const float* s) {
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}
CANON_FN float tree_of_4(const float* s) {
  return (s[0] + s[1]) + (s[2] + s[3]);
}

// Sum of a word's columns at reference R, magic = round_magic - R.
template<class S> CANON_FN float word_sum(u32 word, float c, float magic) {
  const float first = leaf_scaled(Words<S>::column(word, 0), c, magic);
  if constexpr (Words<S>::columns == 1) return first;
  return first + leaf_scaled(Words<S>::column(word, 1), c, magic);
}

// The same in the plain window; two or three of a vector's words come from the table where there is one.
#ifndef BILOGP_TABLE_WORDS
#define BILOGP_TABLE_WORDS 2
#endif
template<class S, bool UseTable>
CANON_FN float plain_word_sum(u32 word, int place, u32 table, const PlainWindow& window) {
  if constexpr (UseTable) {
    if (BILOGP_TABLE_WORDS == 3 ? place != 2 : place & 1) {
      float low, high;
      table_leaves(word, window.small, table, low, high);
      return low + high;
    }
  }
  return word_sum<S>(word, window.c, plain_magic);
}

template<class S, bool UseTable>
CANON_FN float plain_vector_sum(const Vector& v, u32 table, const PlainWindow& window) {
  float s[vector_words];
#pragma unroll
  for (int i = 0; i < vector_words; ++i) s[i] = plain_word_sum<S, UseTable>(v.word[i], i, table, window);
  return tree_of_4(s);
}

template<class S> CANON_FN u32 vector_magnitude(const Vector& v, u32 running) {
  const u32 a = Words<S>::larger_magnitude_or_nan(v.word[0], v.word[1]),
            b = Words<S>::larger_magnitude_or_nan(v.word[2], v.word[3]);
  return Words<S>::larger_magnitude_or_nan(running, Words<S>::larger_magnitude_or_nan(a, b));
}

CANON_FN void load_span(Vector* v, u32 address) {
#pragma unroll
  for (int j = 0; j < span_vectors; ++j) v[j] = load_shared_vector(address ^ (u32)(j << 4));
}

// Sum of a span and, in `magnitude`, what tells whether it counts.
template<class S, bool UseTable>
CANON_FN float plain_sum(const Vector* v, u32 table, const PlainWindow& window, u32& magnitude) {
  float s[span_vectors];
#pragma unroll
  for (int j = 0; j < span_vectors; ++j) {
    magnitude = vector_magnitude<S>(v[j], magnitude);
    s[j] = plain_vector_sum<S, UseTable>(v[j], table, window);
  }
  return tree_of_8(s);
}

} // namespace canon

#endif
