// Tiles that are not plain: masked columns, offsets, wide rows.
//
// The tile's maximum M is found first; then the first way that is exact is taken:
//   masked    M is in the upper part of the plain window: far columns are raised to one that is absorbed, and the sum is made
//             as a plain one is (W1 at reference 6), table included;
//   empty     M = -inf: exactly zero;
//   shifted   the same around M instead of around 0 (W1 at another reference);
//   constant  only M and -inf are there, and M is far from 0 (masks made of the lowest finite number);
//   near      pairs in binary32;
//   general   pairs by the definition.
// Raising is exact only if nothing lies in the gap between what is far and what is real, which one packed add and maximum
// per word finds out.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_TILE_MASKED_H
#define BILOGP_DEVICE_CUDA_HOPPER_TILE_MASKED_H

#include "device/cuda/hopper/tile_pairs.h"

namespace canon {

// A tile's sum: 32 floats, one in each lane, times 2^R; the tree over the lanes is still to be made.
struct TileSum {
  float s;
  i32 R;
};

// Exponents relative to R for sub-trees of up to 2^11 leaves (W1): what is far is at -124 or -125, what is real at -83 or
// above, and 115 is the top. The two numbers leave room for roundings on the way to logits.
constexpr float real_exponent = -82.4f, top_exponent = 115.2f;
constexpr float shifted_exponent_limit = 12000.0f; // of |M * c|: beyond, those roundings would matter

// A lane's span as the masked ways read it, again for each look: from `live` columns on it is -inf.
template<class S> struct MaskedSpan {
  u32 address, lane;
  int live;

  CANON_MEMBER Vector vector(int j) const {
    Vector v = load_shared_vector(address ^ (u32)(j << 4));
    const int column = (j ^ (int)(lane & 7)) * TileShape<S>::vector_columns;
    if (column + TileShape<S>::vector_columns > live) {
#pragma unroll
      for (int i = 0; i < vector_words; ++i) v.word[i] = Words<S>::cut(v.word[i], column + i * Words<S>::columns, live);
    }
    return v;
  }
};

template<class S> CANON_FN float tile_maximum(const MaskedSpan<S>& span) {
  u32 a = Words<S>::in_all_columns(Words<S>::minus_infinity), b = a;
#pragma unroll 4
  for (int j = 0; j < span_vectors; ++j) {
    const Vector v = span.vector(j);
    a = Words<S>::larger_or_nan(a, Words<S>::larger_or_nan(v.word[0], v.word[1]));
    b = Words<S>::larger_or_nan(b, Words<S>::larger_or_nan(v.word[2], v.word[3]));
  }
  a = Words<S>::larger_or_nan(a, b);
  float m = Words<S>::column(a, 0);
  if constexpr (Words<S>::columns == 2) {
    const float high = Words<S>::column(a, 1);
    m = high > m || high != high ? high : m;
  }
  // As integers that are ordered like the floats, NaN above all.
  i32 key = (i32)(m != m ? 0x7fffffffu : bits_from_float(m));
  key ^= (key >> 31) & 0x7fffffff;
  key = __reduce_max_sync(all_lanes, key);
  return float_from_bits((u32)(key ^ ((key >> 31) & 0x7fffffff)));
}

template<class S> CANON_FN bool gap_is_free(const MaskedSpan<S>& span, const Gap<S>& gap) {
  u32 a = 0, b = 0;
#pragma unroll 4
  for (int j = 0; j < span_vectors; ++j) {
    const Vector v = span.vector(j);
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

// The span's sum with everything below `floor` raised to it.
template<class S, bool UseTable>
CANON_FN float raised_span(const MaskedSpan<S>& span, u32 floor, u32 table, const PlainWindow& window, float magic) {
  SpanLadder ladder;
#pragma unroll 2
  for (int j = 0; j < span_vectors; ++j) {
    const Vector v = span.vector(j);
    float t[vector_words];
#pragma unroll
    for (int i = 0; i < vector_words; ++i) {
      const u32 word = Words<S>::larger(v.word[i], floor);
      t[i] = UseTable ? plain_word_sum<S, UseTable>(word, i, table, window) : word_sum<S>(word, window.c, magic);
    }
    ladder.push(tree_of_4(t), j);
  }
  return ladder.third;
}

// The window around a maximum M: `floor` is the first stored number not below M - 238 / c, and R puts it at -124.
template<class S> struct ShiftedWindow {
  u32 floor;
  float real, top;
  i32 R;
  Gap<S> gap;

  CANON_MEMBER static ShiftedWindow around(float m, float c) {
    const ShiftedWindow w = from_floor(pattern_above<S>(m - 237.0f / c), c);
    // The gap must not cross zero, where patterns jump: it may as well begin there.
    return w.real > 0.0f && Words<S>::value(w.floor) < 0.0f ? from_floor(0, c) : w;
  }
  CANON_MEMBER static ShiftedWindow from_floor(u32 floor, float c) {
    const float low = Words<S>::value(floor);
    i32 R = (i32)(fused(low, c, round_magic) - round_magic) + 124;
    if (R == plain_reference) R += 1; // that number is kept for tiles in the plain window
    const u32 real = pattern_above<S>(((float)R + real_exponent) / c);
    return ShiftedWindow{floor, Words<S>::value(real), ((float)R + top_exponent) / c, R,
                         low < 0.0f ? Gap<S>(real, floor) : Gap<S>(floor, real)};
  }
};

// Only the two patterns `top` (finite, a leaf of value p) and -inf are there.
template<class S> CANON_FN float constant_span(const MaskedSpan<S>& span, u32 top, float p) {
  SpanLadder ladder;
#pragma unroll 1
  for (int j = 0; j < span_vectors; ++j) {
    const Vector v = span.vector(j);
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

// The tile whose span of this lane is at `address`, columns from `live` of the span on being -inf.
template<class S, bool UseTable>
CANON_COLD TileSum masked_tile(u32 address, u32 lane, int live, u32 table, const PlainWindow window) {
  const MaskedSpan<S> span = {address, lane, live};
  const float m = tile_maximum(span), c = window.c;
  if (m != m || m == -negative_infinity) return TileSum{quiet_nan(), 0};
  if (m == negative_infinity) return TileSum{0.0f, plain_reference};
  if (window.floor != 0 && m <= Words<S>::value(window.limit) && m >= Words<S>::value(window.real) &&
      gap_is_free(span, Gap<S>(window.real, window.floor))) {
    const u32 floor = Words<S>::in_all_columns(window.floor);
    return TileSum{raised_span<S, UseTable>(span, floor, table, window, plain_magic), plain_reference};
  }
  const float exponent = m * c;
  if (exponent <= shifted_exponent_limit && exponent >= -shifted_exponent_limit) {
    const ShiftedWindow<S> w = ShiftedWindow<S>::around(m, c);
    if (m >= w.real && m <= w.top && gap_is_free(span, w.gap)) {
      const u32 floor = Words<S>::in_all_columns(w.floor);
      return TileSum{raised_span<S, false>(span, floor, table, window, round_magic - (float)w.R), w.R};
    }
  }
  const Scale scale = {c, 0.0f, clamp_bound(c), false, true};
  const u32 top = Words<S>::truncated(m);
  if (exponent < -shifted_exponent_limit && gap_is_free(span, Gap<S>(top, Words<S>::minus_infinity))) {
    float p;
    i32 n;
    leaf_pair<float>(m, scale, p, n);
    return TileSum{constant_span(span, top, p), n};
  }
  const float near_limit = near_exponent / c;
  const bool near = m <= near_limit && near_limit <= scale.bound &&
                    gap_is_free(span, Gap<S>(pattern_above<S>(-near_limit), Words<S>::minus_infinity));
  const Node sum = near ? near_tile<S>(span.address, lane, live, c) : general_tile<S>(address & ~(span_bytes - 1), lane, live, scale);
  return TileSum{lane == 0 ? sum.m : 0.0f, sum.E};
}

} // namespace canon

#endif
