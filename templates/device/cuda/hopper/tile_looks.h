// What the ways for tiles that are not plain have in common: maxima, gaps, adds that flush.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_TILE_LOOKS_H
#define BILOGP_DEVICE_CUDA_HOPPER_TILE_LOOKS_H

#include "device/cuda/hopper/tile_pairs.h"

namespace canon {

// Exponents relative to R of what is real for sub-trees of up to 2^11 leaves (W1), and the ends of W0; with room
// for roundings on the way to logits.
constexpr float real_exponent = -82.4f, lowest_exponent = -125.4f, top_exponent = 115.2f;

// Vectors of a span that a look takes at a time: all of them need more registers than some plans leave.
template<bool UseTable> constexpr int masked_vectors = BILOGP_WARPS <= 16 ? (UseTable ? span_vectors : 4) : 2;

// Makes the columns of this lane's span from `live` on -inf. The copy that will overwrite them belongs to another
// proxy.
template<class S> CANON_FN void cut_span(u32 span, u32 lane, int live) {
#pragma unroll 1
  for (int j = 0; j < span_vectors; ++j) {
    const int column = (j ^ (int)(lane & 7)) * TileShape<S>::vector_columns;
    if (column + TileShape<S>::vector_columns <= live) continue;
    const u32 address = span ^ (u32)(j << 4);
    Vector v = load_shared_vector(address);
#pragma unroll
    for (int i = 0; i < vector_words; ++i) v.word[i] = cut_word<S>(v.word[i], column + i * Words<S>::columns, live);
    store_shared_vector(address, v.word[0], v.word[1], v.word[2], v.word[3]);
  }
  order_before_copies();
}

// Of a word's columns; NaN if there is one.
template<class S> CANON_FN float largest_value(u32 word) {
  const float low = Words<S>::column(word, 0);
  if constexpr (Words<S>::columns == 1) {
    return low;
  } else {
    const float high = Words<S>::column(word, 1);
    return high > low || high != high ? high : low;
  }
}

template<class S> CANON_FN float tile_maximum(u32 span) {
  u32 a = Words<S>::in_all_columns(Words<S>::minus_infinity), b = a;
#pragma unroll 4
  for (int j = 0; j < span_vectors; ++j) {
    const Vector v = load_shared_vector(span ^ (u32)(j << 4));
    a = Words<S>::larger_or_nan(a, Words<S>::larger_or_nan(v.word[0], v.word[1]));
    b = Words<S>::larger_or_nan(b, Words<S>::larger_or_nan(v.word[2], v.word[3]));
  }
  const float m = largest_value<S>(Words<S>::larger_or_nan(a, b));
  // As integers that are ordered like the floats, NaN above all.
  i32 key = (i32)(m != m ? 0x7fffffffu : bits_from_float(m));
  key ^= (key >> 31) & 0x7fffffff;
  key = __reduce_max_sync(all_lanes, key);
  return float_from_bits((u32)(key ^ ((key >> 31) & 0x7fffffff)));
}

template<class S> CANON_FN bool gap_is_free(u32 span, const Gap<S>& gap) {
  u32 a = 0, b = 0;
#pragma unroll 4
  for (int j = 0; j < span_vectors; ++j) {
    const Vector v = load_shared_vector(span ^ (u32)(j << 4));
    a = gap.look(v.word[1], gap.look(v.word[0], a));
    b = gap.look(v.word[3], gap.look(v.word[2], b));
  }
  return __all_sync(all_lanes, gap.is_free(a) && gap.is_free(b));
}

// Sum of eight vectors, one after the other, in the tree's order.
struct SpanLadder {
  float first = 0.0f, second = 0.0f, third = 0.0f;
  CANON_MEMBER void push(float s, int j) {
    if ((j & 1) == 0) {
      first = s;
    } else if ((j & 2) == 0) {
      second = first + s;
    } else {
      const float four = second + (first + s);
      third = (j & 4) == 0 ? four : third + four;
    }
  }
};

CANON_FN float flushed_tree_of_4(const float* s) {
  return flushed_sum(s[0], s[1]) + flushed_sum(s[2], s[3]);
}

// Sum of a word's columns at reference R, magic = round_magic - R; a subnormal one counts as zero (of a word with one
// column, once it is added to another).
template<class S> CANON_FN float flushed_word(u32 word, float c, float magic) {
  const float first = leaf_scaled(Words<S>::column(word, 0), c, magic);
  if constexpr (Words<S>::columns == 1) return first;
  return flushed_sum(first, leaf_scaled(Words<S>::column(word, 1), c, magic));
}

// The same in the plain window; three of a vector's words come from the table where there is one: beside the looks
// arithmetic is dearer here than in a plain tile.
template<class S, bool UseTable>
CANON_FN float flushed_word_sum(u32 word, int place, u32 table, const PlainWindow& window) {
  if constexpr (UseTable) {
    if (place != 2) {
      float low, high;
      table_leaves(word, window.small, table, low, high);
      return flushed_sum(low, high);
    }
  }
  return flushed_word<S>(word, window.c, plain_magic);
}

// Only the two patterns `top` (finite, a leaf of value p) and -inf are there, or what is not `top` does not count.
template<class S> CANON_FN float constant_span(u32 span, u32 top, float p) {
  SpanLadder ladder;
#pragma unroll 1
  for (int j = 0; j < span_vectors; ++j) {
    const Vector v = load_shared_vector(span ^ (u32)(j << 4));
    float t[vector_words];
#pragma unroll
    for (int i = 0; i < vector_words; ++i) {
      t[i] = Words<S>::column_equals(v.word[i], 0, top) ? p : 0.0f;
      if constexpr (Words<S>::columns == 2) t[i] = t[i] + (Words<S>::column_equals(v.word[i], 1, top) ? p : 0.0f);
    }
    ladder.push(tree_of_4(t), j);
  }
  return ladder.third;
}

// Nothing but the maximum m and -inf: masks made of the lowest finite number.
template<class S> CANON_FN bool is_constant_tile(u32 span, float m, float c) {
  return m < 0.0f && gap_is_free<S>(span, Gap<S>(Words<S>::truncated(m), Words<S>::minus_infinity));
}

// Whether the stored number next below the maximum m, and all others, are absorbed by its leaf (W1). None of them is
// clamped to something near.
template<class S> CANON_FN bool absorbs_all(float m, float bound, float c) {
  const u32 pattern = Words<S>::truncated(m);
  const float next = Words<S>::value(m > 0.0f ? pattern - 1 : pattern + 1);
  return m != 0.0f && m <= bound && m >= -0.5f * bound && (m - next) * c >= 130.0f;
}

} // namespace canon

#endif
