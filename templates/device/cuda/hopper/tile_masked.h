// Tiles that are not plain: masked columns, offsets, wide rows.
//
// The tile's maximum M is found first; then the first way that is exact is taken:
//   masked    M is in the upper part of the plain window: far columns are raised to one that is absorbed, and the sum
//             is made as a plain one is (W1 at reference 6), table included;
//   empty     M = -inf: exactly zero;
//   shifted   the same around M instead of around 0 (W1 at another reference);
//   constant  only M and -inf are there, and M is far from 0 (masks made of the lowest finite number);
//   near      pairs in binary32;
//   general   pairs by the definition.
// Raising is exact only if nothing lies in the gap between what is far and what is real, which one packed add and
// maximum per word finds out.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_TILE_MASKED_H
#define BILOGP_DEVICE_CUDA_HOPPER_TILE_MASKED_H

#include "device/cuda/hopper/tile_pairs.h"

namespace canon {

// The way that served a tile: what the next one of the same kind can begin with.
enum class TileWay : i32 { plain, masked, shifted, empty, near, other };

// A tile's sum: 32 floats, one in each lane, times 2^R; the tree over the lanes is still to be made.
struct TileSum {
  float s;
  i32 R;
  TileWay way;
  float maximum; // where the way is shifted: of the tile whose window served
};

// Exponents relative to R for sub-trees of up to 2^11 leaves (W1): what is far is at -124 or -125, what is real at -83
// or above, and 115 is the top. The two numbers leave room for roundings on the way to logits.
constexpr float real_exponent = -82.4f, top_exponent = 115.2f;
constexpr float shifted_exponent_limit = 12000.0f; // of |M * c|: beyond, those roundings would matter
// Of c: below, logits of these exponents would lie beyond 2^29, where they must be clamped.
constexpr float smallest_shifted_scale = 0x1p-15f;

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
    for (int i = 0; i < vector_words; ++i) v.word[i] = Words<S>::cut(v.word[i], column + i * Words<S>::columns, live);
    store_shared_vector(address, v.word[0], v.word[1], v.word[2], v.word[3]);
  }
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
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

// A W1 window: what is below `floor` is raised to it; nothing may lie between it and `real`, and the maximum must be
// between `real` and `top`.
template<class S> struct Window {
  u32 floor;
  float real, top;
  i32 R;
  Gap<S> gap;

  // At the plain reference, so that the table serves.
  CANON_MEMBER static Window plain(const PlainWindow& w) {
    return Window{w.floor, Words<S>::value(w.real), Words<S>::value(w.limit), plain_reference, Gap<S>(w.real, w.floor)};
  }
  // Around a maximum m: `floor` is the first stored number not below m - 237 / c, and R puts it at -124.
  CANON_MEMBER static Window around(float m, float c) {
    const Window w = from_floor(pattern_above<S>(m - 237.0f / c), c);
    // The gap must not cross zero, where patterns jump: it may as well begin there.
    return w.real > 0.0f && Words<S>::value(w.floor) < 0.0f ? from_floor(0, c) : w;
  }
  CANON_MEMBER static Window from_floor(u32 floor, float c) {
    const float low = Words<S>::value(floor);
    i32 R = (i32)(fused(low, c, round_magic) - round_magic) + 124;
    if (R == plain_reference) R += 1; // that number is kept for tiles in the plain window
    const u32 real = pattern_above<S>(((float)R + real_exponent) / c);
    return Window{floor, Words<S>::value(real), ((float)R + top_exponent) / c, R,
                  low < 0.0f ? Gap<S>(real, floor) : Gap<S>(floor, real)};
  }
};

// Vectors of a span that a look takes at a time: all of them need more registers than some plans leave.
template<bool UseTable> constexpr int windowed_vectors = BILOGP_WARPS <= 12 ? (UseTable ? span_vectors : 4) : 2;

// The span's sum in a window, with all checks in the same look; false in all lanes if the tile is not of this window.
template<class S, bool UseTable>
CANON_FN bool windowed_span(u32 span, const Window<S>& w, u32 table, const PlainWindow& plain, float& s) {
  const u32 floor = Words<S>::in_all_columns(w.floor);
  const float magic = round_magic - (float)w.R;
  u32 highest = Words<S>::in_all_columns(Words<S>::minus_infinity), in_gap = 0;
  SpanLadder ladder;
#pragma unroll windowed_vectors < UseTable>
  for (int j = 0; j < span_vectors; ++j) {
    const Vector v = load_shared_vector(span ^ (u32)(j << 4));
    float t[vector_words];
#pragma unroll
    for (int i = 0; i < vector_words; ++i) {
      highest = Words<S>::larger_or_nan(highest, v.word[i]);
      in_gap = w.gap.look(v.word[i], in_gap);
      const u32 word = Words<S>::larger(v.word[i], floor);
      t[i] = UseTable ? plain_word_sum<S, UseTable>(word, i, table, plain) : word_sum<S>(word, plain.c, magic);
    }
    ladder.push(tree_of_4(t), j);
  }
  s = ladder.third;
  const float m = largest_value<S>(highest);
  return __all_sync(all_lanes, w.gap.is_free(in_gap) && m <= w.top) && __any_sync(all_lanes, m >= w.real);
}

// Only the two patterns `top` (finite, a leaf of value p) and -inf are there.
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

// Whether all logits of a tile with the finite maximum m are -inf or small enough for near_tile.
template<class S> CANON_FN bool is_near_tile(u32 span, float m, float c) {
  const float limit = near_exponent / c;
  return m <= limit && limit <= clamp_bound(c) &&
         gap_is_free<S>(span, Gap<S>(pattern_above<S>(-limit), Words<S>::minus_infinity));
}

template<class S> CANON_FN TileSum near_tile_sum(u32 span, u32 lane, float m, float c) {
  const Node sum = near_tile<S>(span, c);
  return TileSum{lane == 0 ? sum.m : 0.0f, sum.E, TileWay::near, m};
}

// Nothing but m and -inf: masks made of the lowest finite number.
template<class S> CANON_FN bool is_constant_tile(u32 span, float m, float c) {
  return m * c < -shifted_exponent_limit &&
         gap_is_free<S>(span, Gap<S>(Words<S>::truncated(m), Words<S>::minus_infinity));
}

// Neither plain nor of one window nor near.
template<class S> CANON_FN TileSum other_tile(u32 span, u32 lane, float m, float c) {
  const Scale scale = {c, 0.0f, clamp_bound(c), false, true};
  const u32 top = Words<S>::truncated(m);
  if (is_constant_tile<S>(span, m, c)) {
    float p;
    i32 n;
    leaf_pair<float>(m, scale, p, n);
    return TileSum{constant_span<S>(span, top, p), n, TileWay::other, m};
  }
  const Node sum = general_tile<S>(span & ~(span_bytes - 1), scale);
  return TileSum{lane == 0 ? sum.m : 0.0f, sum.E, TileWay::other, m};
}

// The tile whose span of this lane is at `span`. `expected` is the way to begin with, `last` the maximum of the tile
// that was served so.
template<class S, bool UseTable>
CANON_COLD TileSum masked_tile(u32 span, u32 lane, u32 table, const PlainWindow plain, TileWay expected, float last) {
  const float c = plain.c;
  float m = last;
  bool looked = false;
  TileWay way = expected;
#pragma unroll 1
  for (;;) {
    float s;
    if (way == TileWay::masked) {
      if (windowed_span<S, UseTable>(span, Window<S>::plain(plain), table, plain, s))
        return TileSum{s, plain_reference, TileWay::masked, m};
    } else if (way == TileWay::shifted) {
      const Window<S> w = Window<S>::around(m, c);
      if (windowed_span<S, false>(span, w, table, plain, s)) return TileSum{s, w.R, TileWay::shifted, m};
    }
    bool try_masked = false, try_shifted = way != TileWay::shifted;
    if (!looked) {
      m = tile_maximum<S>(span);
      if (m == negative_infinity) return TileSum{0.0f, plain_reference, TileWay::empty, m};
      if (m != m || m == -negative_infinity) return TileSum{quiet_nan(), 0, TileWay::other, m};
      if (expected == TileWay::near && is_near_tile<S>(span, m, c)) return near_tile_sum<S>(span, lane, m, c);
      looked = try_shifted = true;
      try_masked = way != TileWay::masked && plain.floor != 0 && m <= Words<S>::value(plain.limit) &&
                   m >= Words<S>::value(plain.real);
    }
    const float exponent = m * c;
    const bool can_shift =
        c >= smallest_shifted_scale && exponent <= shifted_exponent_limit && exponent >= -shifted_exponent_limit;
    if (try_masked || (try_shifted && can_shift)) {
      way = try_masked ? TileWay::masked : TileWay::shifted;
      continue;
    }
    return is_near_tile<S>(span, m, c) && !is_constant_tile<S>(span, m, c) ? near_tile_sum<S>(span, lane, m, c)
                                                                           : other_tile<S>(span, lane, m, c);
  }
}

} // namespace canon

#endif
