// Tiles that are not plain: masked columns, offsets, wide rows.
//
// Far columns are raised to a floor: a stored number whose leaf is subnormal at the window's reference, so that adds
// that flush take it for a true zero. The ways, each exact if its look at the tile says so:
//   zeros     at the plain reference, table included: only -inf lies below the window (W0);
//   absorbed  the same where finite logits lie below it: none is near it, and one is real (W1);
//   shifted   at another reference: everything is of one sign and in the window (W0);
//   enclosed  at another reference: the tree's sum lies between two that come out the same (tile_windows.h);
//   other     constant: only the maximum and what it absorbs, or -inf; general: pairs by the definition.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_TILE_MASKED_H
#define BILOGP_DEVICE_CUDA_HOPPER_TILE_MASKED_H

#include "device/cuda/hopper/tile_windows.h"

namespace canon {

// The way that served a tile: what the next one of the same kind can begin with.
enum class TileWay : i32 { plain, zeros, absorbed, shifted, enclosed, other };

// A tile's sum: 32 floats, one in each lane, times 2^R; the tree over the lanes is still to be made.
struct TileSum {
  float s;
  i32 R;
  TileWay way;
  float maximum; // where the way is shifted or enclosed: of the tile whose window served
};

// A span's sum at the plain reference, what is below the floor being zero; false in all lanes if that is not exact:
// the way is zeros, and a finite logit lies below the window, or it is absorbed, and one lies next to it or none is
// real.
template<class S, bool UseTable>
CANON_FN bool masked_span(u32 span, TileWay way, u32 table, const PlainWindow& plain, float& s) {
  const bool zeros = way == TileWay::zeros;
  const u32 real =
      pattern_above<S>(((float)plain_reference + (zeros ? lowest_exponent : real_exponent)) * plain.inverse);
  const Gap<S> gap(real, zeros ? Words<S>::minus_infinity : plain.floor);
  const u32 floor = Words<S>::in_all_columns(plain.floor);
  constexpr int unrolled = masked_vectors<UseTable>;
  u32 highest = Words<S>::in_all_columns(Words<S>::minus_infinity), in_gap = 0;
  SpanLadder ladder;
#pragma unroll unrolled
  for (int j = 0; j < span_vectors; ++j) {
    const Vector v = load_shared_vector(span ^ (u32)(j << 4));
    float t[vector_words];
#pragma unroll
    for (int i = 0; i < vector_words; ++i) {
      highest = Words<S>::larger_or_nan(highest, v.word[i]);
      in_gap = gap.look(v.word[i], in_gap);
      t[i] = flushed_word_sum<S, UseTable>(Words<S>::larger(v.word[i], floor), i, table, plain);
    }
    ladder.push(flushed_tree_of_4(t), j);
  }
  s = ladder.third;
  const float m = largest_value<S>(highest);
  return __all_sync(all_lanes, gap.is_free(in_gap) && m <= Words<S>::value(plain.limit)) &&
         (zeros || __any_sync(all_lanes, m >= Words<S>::value(real)));
}

// Neither of the plain window nor enclosed.
template<class S> CANON_FN TileSum other_tile(u32 span, u32 lane, float m, float c) {
  const Scale scale = {c, 0.0f, clamp_bound(c), false, true};
  if (absorbs_all<S>(m, scale.bound, c) || is_constant_tile<S>(span, m, c)) {
    float p;
    i32 n;
    leaf_pair<float>(m, scale, p, n);
    return TileSum{constant_span<S>(span, Words<S>::truncated(m), p), n, TileWay::other, m};
  }
  const Node sum = general_tile<S>(span & ~(span_bytes - 1), scale);
  return TileSum{lane == 0 ? sum.m : 0.0f, sum.E, TileWay::other, m};
}

// The tile whose span of this lane is at `span`. `expected` is the way to begin with, `last` the maximum of the tile
// that was served so.
template<class S, bool UseTable, bool HasWindowTable>
CANON_COLD TileSum masked_tile(u32 span, u32 lane, u32 table, u32 window_table, const PlainWindow plain,
                               TileWay expected, float last) {
  const float c = plain.c;
  float m = last;
  bool looked = false;
  // Rows of other temperatures have other windows.
  const bool can_begin = expected < TileWay::shifted ? plain.floor != 0 : has_window(m, c);
  TileWay way = can_begin ? expected : TileWay::plain;
#pragma unroll 1
  for (;;) {
    float s;
    if (way == TileWay::zeros || way == TileWay::absorbed) {
      if (masked_span<S, UseTable>(span, way, table, plain, s)) return TileSum{s, plain_reference, way, m};
    }
    if (way == TileWay::shifted || way == TileWay::enclosed) {
      const Window<S> w(m, plain);
      bool exact = false;
      if (way == TileWay::enclosed) {
        exact = enclosed_sum<S>(span, lane, w, c, s);
      } else {
        const Range<S> range = w.range(m, plain.inverse);
        if (HasWindowTable && range.limit < window_entries) {
          if (load_shared(window_table + window_entries * 4) != bits_from_float(m))
            build_window_table<S>(window_table, lane, range.near, c, w.R, m);
          exact = looked_up_span<S>(span, range, window_table, s);
        } else {
          exact = shifted_span<S>(span, w, range, c, s);
        }
      }
      if (exact) return TileSum{s, w.R, way, m};
    }
    if (!looked) {
      looked = true;
      m = tile_maximum<S>(span);
      if (m == negative_infinity) return TileSum{0.0f, plain_reference, TileWay::zeros, m};
      if (m != m || m == -negative_infinity) return TileSum{quiet_nan(), 0, TileWay::other, m};
      const bool in_window =
          plain.floor != 0 && m <= Words<S>::value(plain.limit) && m >= real_exponent * plain.inverse;
      way = !in_window ? TileWay::absorbed : expected == TileWay::zeros ? TileWay::zeros : TileWay::plain;
    }
    if (way == TileWay::other) return other_tile<S>(span, lane, m, c);
    way = (TileWay)((i32)way + 1);
    if (way == TileWay::shifted && !has_window(m, c)) way = TileWay::other;
  }
}

} // namespace canon

#endif
