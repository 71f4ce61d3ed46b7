// The node of 256 neighbouring columns (128 of float32), one vector per lane, whatever they hold. A part of these may
// be missing on either side: then the node is that of the aligned sub-tree that is there, or one padded with zeros.
//
//   scaled  a reference R puts the block's maximum high in the binary32 range; -inf becomes a true zero. Where not
//   every
//           finite leaf fits (W0), far ones are raised to one that is absorbed, if none lies in the gap between (W1).
//   pairs   (p, n) pairs for any block (W2).
#ifndef BILOGP_DEVICE_GPU_GENERAL_BLOCK_H
#define BILOGP_DEVICE_GPU_GENERAL_BLOCK_H

#include "canon/leaf.h"
#include "device/gpu/storage.h"
#include "device/gpu/tree.h"

namespace canon {

// One lane's vector of the block; columns [first, last) of it are there.
template<class S> struct LaneColumns {
  Vector vector;
  int first, last;

  CANON_MEMBER bool has(int i) const { return i >= first && i < last; }
  CANON_MEMBER float column(int i) const { return S::column(vector, i); }
};

struct BlockRange {
  float maximum, minimum_finite; // -inf and +inf where there is none
  bool poisoned;
};

template<class S> CANON_FN BlockRange block_range(const LaneColumns<S>& columns) {
  float high = negative_infinity, low_finite = -negative_infinity;
  bool unordered = false;
  CANON_UNROLL
  for (int i = 0; i < S::vector_columns; ++i) {
    const float x = columns.has(i) ? columns.column(i) : negative_infinity;
    high = x > high ? x : high;
    low_finite = x < low_finite && x != negative_infinity ? x : low_finite;
    unordered = unordered || x != x;
  }
  BlockRange range;
  range.maximum = warp_maximum(high);
  range.minimum_finite = -warp_maximum(-low_finite);
  range.poisoned = warp_any(unordered) || range.maximum == -negative_infinity;
  return range;
}

// Leaves p * 2^(n - R) added as binary32.
template<class S> CANON_FN float scaled_sum(const LaneColumns<S>& columns, float c, float magic, float clamp_low) {
  float leaf[S::vector_columns];
  CANON_UNROLL
  for (int i = 0; i < S::vector_columns; ++i) {
    const float x = columns.column(i);
    const float value = leaf_scaled(x > clamp_low ? x : clamp_low, c, magic);
    leaf[i] = columns.has(i) && x != negative_infinity ? value : 0.0f;
  }
  return warp_tree(tree_of<S::vector_columns>(leaf));
}

template<class S> CANON_FN bool gap_is_empty(const LaneColumns<S>& columns, float low, float gap_end) {
  bool in_gap = false;
  CANON_UNROLL
  for (int i = 0; i < S::vector_columns; ++i) {
    const float x = columns.column(i);
    in_gap = in_gap || (columns.has(i) && x > low && x < gap_end);
  }
  return !warp_any(in_gap);
}

// A leaf far from 0, by binary64. Not inlined: it is long.
CANON_COLD Node far_leaf(float x, float c, float bound) {
  Scale scale = {};
  scale.c = c;
  scale.bound = bound;
  Node leaf;
  leaf_pair<float>(x, scale, leaf.m, leaf.E);
  return leaf;
}

// Leaves as pairs (p, n). is_near: |x| * c is at most 2^21 for every finite x and |x| at most B, so that one fused
// multiply-add gives n.
template<class S> CANON_FN Node pair_of_columns(const LaneColumns<S>& columns, float c, float bound, bool is_near) {
  Node leaf[S::vector_columns];
  CANON_UNROLL
  for (int i = 0; i < S::vector_columns; ++i) {
    const float x = columns.column(i);
    const bool counts = columns.has(i) && x != negative_infinity;
    if (is_near || !counts) {
      const float rounded = fused(x, c, round_magic);
      const float p = leaf_value(fused(x, c, -(rounded - round_magic)));
      leaf[i] = Node{counts ? p : 0.0f, counts ? (i32)bits_from_float(rounded) - round_magic_bits : zero_exponent};
    } else {
      leaf[i] = far_leaf(x, c, bound);
    }
  }
  return warp_pair_tree(pair_tree_of<S::vector_columns>(leaf));
}

// All lanes call this together and get the node.
template<class S> CANON_FN Node block_node(const LaneColumns<S>& columns, float c, float bound) {
  constexpr int level = S::vector_level + 5;
  const BlockRange range = block_range(columns);
  if (range.poisoned) return poison_node();
  if (range.maximum == negative_infinity) return zero_node();
  const float top = range.maximum * c, bottom = range.minimum_finite * c;
  const bool within_bound = range.maximum <= bound && range.minimum_finite >= -bound;
  if (top <= 0x1p19f && top >= -0x1p19f && range.maximum <= bound) {
    const float rounded = fused(range.maximum, c, round_magic);
    const i32 R = (i32)bits_from_float(rounded) - round_magic_bits - (120 - level);
    // W0: every finite leaf fits, nothing is clamped. Else W1, where the roundings move the limits by less than 0.1 in
    // the exponent: far means n - R <= -123, and whatever is not far has n - R >= -94 + level.
    const bool all_fit = within_bound && fused(range.minimum_finite, c, -(float)R) >= -124.0f;
    const float clamp_low = all_fit ? range.minimum_finite : (float)(R - 124) / c;
    const float gap_end = ((float)(R - 94 + level) + 0.1f) / c;
    if (all_fit || (clamp_low >= -bound && gap_is_empty(columns, clamp_low, gap_end)))
      return normalised(Node{scaled_sum(columns, c, round_magic - (float)R, clamp_low), R});
  }
  const bool is_near = within_bound && top <= 0x1p20f && top >= -0x1p20f && bottom >= -0x1p20f;
  return normalised(pair_of_columns(columns, c, bound, is_near));
}

} // namespace canon

#endif
