// Windows around a tile's maximum, at a reference of their own, and the ways of summing in them.
//
// Where all columns are inside, ordinary adds do. Where some are below the floor, the tree is summed twice, with zeros
// for them and with more than they can be: sums are monotone, so the true one lies between, and where both come out the
// same that is it.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_TILE_WINDOWS_H
#define BILOGP_DEVICE_CUDA_HOPPER_TILE_WINDOWS_H

#include "device/cuda/hopper/tile_looks.h"

namespace canon {

// A window below and above a maximum m: from `floor`, whose leaf is subnormal at reference R, to 242 powers of two
// above it. There is room above m for those of the tile's neighbours.
template<class S> struct Window {
  u32 floor;
  i32 R;
  CANON_MEMBER Window(float m, const PlainWindow& plain) {
    floor = pattern_above<S>(m - 200.0f * plain.inverse);
    const float x = Words<S>::value(floor), n = fused(x, plain.c, round_magic) - round_magic;
    R = (i32)n + (leaf_value(fused(x, plain.c, -n)) < 1.0f ? 126 : 127);
  }
  // Whether a maximum leaves the sum of 2^11 leaves in range.
  CANON_MEMBER bool holds(float m, float c) const { return fused(m, c, round_magic) - round_magic <= (float)(R + 115); }
  // The patterns of m's sign that W0 allows.
  CANON_MEMBER Range<S> range(float m, float inverse) const {
    const float low = ((float)R + lowest_exponent) * inverse, top = ((float)R + top_exponent) * inverse;
    if (m > 0.0f) return Range<S>(low > 0.0f ? pattern_above<S>(low) : 0, Words<S>::truncated(top));
    return Range<S>(top < 0.0f ? pattern_below<S>(top) : Words<S>::sign, Words<S>::truncated(low));
  }
};

// A span's sum at the window's reference; false in all lanes if it is not as the way says.
template<class S> CANON_FN bool shifted_span(u32 span, const Window<S>& w, const Range<S>& range, float c, float& s) {
  const float magic = round_magic - (float)w.R;
  constexpr int unrolled = masked_vectors<false>;
  u32 farthest = 0;
  SpanLadder ladder;
#pragma unroll unrolled
  for (int j = 0; j < span_vectors; ++j) {
    const Vector v = load_shared_vector(span ^ (u32)(j << 4));
    float t[vector_words];
#pragma unroll
    for (int i = 0; i < vector_words; ++i) {
      farthest = range.look(v.word[i], farthest);
      t[i] = word_sum<S>(v.word[i], c, magic);
    }
    ladder.push(tree_of_4(t), j);
  }
  s = ladder.third;
  return __all_sync(all_lanes, range.holds(farthest));
}

// Leaves of a window that one warp keeps: bfloat16 has few patterns away from zero. The last word tells for which
// maximum they are.
CANON_FN void clear_window_table(u32 table, u32 lane) {
  if (lane == 0) store_shared(table + window_entries * 4, nan_bits);
  warp_barrier();
}

template<class S> CANON_COLD void build_window_table(u32 table, u32 lane, u32 near, float c, i32 R, float m) {
  warp_barrier();
#pragma unroll 1
  for (u32 i = lane; i < window_entries; i += 32)
    store_shared(table + i * 4, bits_from_float(leaf_scaled(Words<S>::value(near + i), c, round_magic - (float)R)));
  if (lane == 0) store_shared(table + window_entries * 4, bits_from_float(m));
  warp_barrier();
}

// As shifted_span, all of it from the table.
template<class S> CANON_FN bool looked_up_span(u32 span, const Range<S>& range, u32 table, float& s) {
  // The loads below may not move to before the table was built.
  asm volatile("" : "+r"(table) : : "memory");
  const u32 near = Words<S>::in_all_columns(range.near);
  constexpr u32 mask = window_table_bytes - 4;
  u32 farthest = 0;
  SpanLadder ladder;
#pragma unroll 4
  for (int j = 0; j < span_vectors; ++j) {
    const Vector v = load_shared_vector(span ^ (u32)(j << 4));
    float t[vector_words];
#pragma unroll
    for (int i = 0; i < vector_words; ++i) {
      farthest = range.look(v.word[i], farthest);
      const u32 index = v.word[i] - near;
      t[i] = load_shared_constant(table | ((index << 2) & mask)) + load_shared_constant(table | ((index >> 14) & mask));
    }
    ladder.push(tree_of_4(t), j);
  }
  s = ladder.third;
  return __all_sync(all_lanes, range.holds(farthest));
}

// What is above the sum of two leaves that were taken for zero. Added to that of one and a zero, or of two others, it
// is not too small either, since those sums are exact.
constexpr float beyond_flushed = 0x1p-124f;

// The tree with zeros below the floor in `least`, with more than there can be in `most`.
template<class S> CANON_FN bool enclosed_span(u32 span, const Window<S>& w, float c, float& least, float& most) {
  const u32 floor = Words<S>::in_all_columns(w.floor);
  const float magic = round_magic - (float)w.R;
  constexpr int unrolled = masked_vectors<false>;
  u32 highest = Words<S>::in_all_columns(Words<S>::minus_infinity);
  SpanLadder low, high;
#pragma unroll unrolled
  for (int j = 0; j < span_vectors; ++j) {
    const Vector v = load_shared_vector(span ^ (u32)(j << 4));
    float t[vector_words], u[vector_words];
#pragma unroll
    for (int i = 0; i < vector_words; ++i) {
      highest = Words<S>::larger_or_nan(highest, v.word[i]);
      t[i] = flushed_word<S>(Words<S>::larger(v.word[i], floor), c, magic);
      u[i] = flushed_sum(t[i], beyond_flushed);
    }
    low.push(flushed_tree_of_4(t), j);
    high.push(tree_of_4(u), j);
  }
  least = low.third;
  most = high.third;
  return __all_sync(all_lanes, w.holds(largest_value<S>(highest), c));
}

// The sum of a tile, in lanes or in the first lane alone, if both trees agree.
template<class S> CANON_FN bool enclosed_sum(u32 span, u32 lane, const Window<S>& w, float c, float& s) {
  float most;
  if (!enclosed_span<S>(span, w, c, s, most)) return false;
  if (__all_sync(all_lanes, s == most)) return true;
#pragma unroll 1
  for (int distance = 1; distance < 32; distance *= 2) {
    s = s + __shfl_xor_sync(all_lanes, s, distance);
    most = most + __shfl_xor_sync(all_lanes, most, distance);
  }
  const bool same = __all_sync(all_lanes, s == most);
  if (lane != 0) s = 0.0f;
  return same;
}

// Whether there is a window around m: logits of its exponents are not huge, so that sums of 24 bits do for its bounds,
// and what is below its floor is not clamped at 2^29.
CANON_FN bool has_window(float m, float c) {
  const float exponent = m * c;
  return c >= 0x1p-15f && exponent <= 12000.0f && exponent >= -12000.0f;
}

} // namespace canon

#endif
