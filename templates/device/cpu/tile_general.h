// A tile whose leaves do not fit the fast ways, in two ways that give the same bits (windows W0, W1 and W2 of the
// contract):
//   scanned  a first look finds maximum and minimum; the reference R puts the maximum high in the binary32 range; -inf
//            becomes a true zero. Where not every finite leaf fits, far ones are raised to one that is absorbed,
//            provided none lies in the gap between.
//   pairs    (p, n) pairs, for any row.
// Rare: loops stay rolled, for the sake of the time that compiling takes.
#ifndef BILOGP_DEVICE_CPU_TILE_GENERAL_H
#define BILOGP_DEVICE_CPU_TILE_GENERAL_H

#include "device/cpu/tile_stream.h"

namespace canon {

// Calls each(group, valid, x) for every group of a tile that has columns: its number, how many of its columns count,
// its logits (missing columns repeat one that is there).
template<class S, class Each> CANON_FN void each_group_of_tile(const typename S::Stored* p, int columns, Each each) {
#pragma clang loop unroll(disable)
  for (int g = 0, begin = 0; begin < columns; ++g, begin += S::group_columns) {
    const int valid = columns - begin;
    FloatLanes x[S::group_vectors];
    S::unpack(group_words<S>(p + begin, valid), x);
    each(g, valid, x);
  }
}

struct TileRange {
  float maximum, minimum_finite; // of the columns; -inf and +inf where there is none
  bool poisoned;
};

template<class S> CANON_FN TileRange scan_tile(const typename S::Stored* p, int columns) {
  FloatLanes high = splat<FloatLanes>(negative_infinity), low_finite = -high;
  IntLanes unordered = {};
  each_group_of_tile<S>(p, columns, [&](int, int, const FloatLanes* x) {
    for (int v = 0; v < S::group_vectors; ++v) {
      high = x[v] > high ? x[v] : high;
      const FloatLanes finite = x[v] == splat<FloatLanes>(negative_infinity) ? low_finite : x[v];
      low_finite = finite < low_finite ? finite : low_finite;
      unordered |= x[v] != x[v];
    }
  });
  TileRange range;
  range.maximum = __builtin_reduce_max(high);
  range.minimum_finite = __builtin_reduce_min(low_finite);
  range.poisoned = __builtin_reduce_or(unordered) != 0 || range.maximum == -negative_infinity;
  return range;
}

// Sums of a tile by pairs, where leaf(x, pair) makes one of a vector of logits.
template<class S, class Leaf> CANON_FN Node pairs_of_tile(const typename S::Stored* p, int columns, Leaf leaf) {
  const PairVector zero = {FloatLanes{}, IntLanes{} + zero_exponent};
  PairVector blocks[tile_blocks];
#pragma clang loop unroll(disable)
  for (int b = 0, begin = 0; b < tile_blocks; ++b, begin += TileShape<S>::block_columns) {
    blocks[b] = zero;
    if (begin >= columns) continue;
    PairVector groups[block_groups];
#pragma clang loop unroll(disable)
    for (int g = 0; g < block_groups; ++g) groups[g] = zero;
    const int rest = columns - begin;
    each_group_of_tile<S>(p + begin, rest < TileShape<S>::block_columns ? rest : TileShape<S>::block_columns,
                          [&](int g, int valid, const FloatLanes* x) {
                            PairVector pairs[S::group_vectors];
#pragma clang loop unroll(disable)
                            for (int v = 0; v < S::group_vectors; ++v) {
                              leaf(x[v], pairs[v]);
                              if (valid >= S::group_columns) continue;
                              const IntLanes is_valid = valid_lanes<S>(valid, v);
                              pairs[v].s = select(is_valid, pairs[v].s, zero.s);
                              pairs[v].R = select(is_valid, pairs[v].R, zero.R);
                            }
                            const PairVector& last = pairs[S::group_vectors - 1];
                            groups[g] =
                                S::group_vectors == 2 ? pair_sums(pairs[0].s, pairs[0].R, last.s, last.R) : last;
                          });
    blocks[b] = pair_tree(groups);
  }
  return pair_across(pair_tree(blocks));
}

struct PairSum {
  Node node;
  float biggest; // magnitude among the finite logits; not a number where one is, or +inf
};

// is_near: |x| <= B and |x| * c <= 2^21 for every finite logit, which `biggest` tells; one rounding does then.
template<class S>
CANON_COLD PairSum tile_pairs(const typename S::Stored* p, int columns, const Scale& scale, bool is_near) {
  const FloatLanes c = splat<FloatLanes>(scale.c), magic = splat<FloatLanes>(round_magic);
  UIntLanes biggest = {};
  PairSum sum;
  sum.node = pairs_of_tile<S>(p, columns, [&](FloatLanes x, PairVector& pair) {
    if (BILOGP_SOFTWARE_FMA || !is_near) return leaf_pair<FloatLanes>(x, scale, pair.s, pair.R);
    const auto is_zero = x == splat<FloatLanes>(negative_infinity);
    const FloatLanes finite = select(is_zero, FloatLanes{}, x);
    biggest = __builtin_elementwise_max(biggest, bits_of(finite) & 0x7fffffffu);
    const FloatLanes rounded = fused(finite, c, magic);
    pair.s = select(is_zero, FloatLanes{}, leaf_value(fused(finite, c, -(rounded - magic))));
    pair.R = select(is_zero, (IntLanes)(IntLanes{} + zero_exponent), (IntLanes)bits_of(rounded) - round_magic_bits);
  });
  sum.biggest = float_from_bits(__builtin_reduce_max(biggest));
  return sum;
}

struct ScannedWindow {
  FloatLanes c, magic, clamp_low, gap_end; // x <= clamp_low is far, clamp_low < x < gap_end fails
};

template<class S>
CANON_FN float scanned_sum(const typename S::Stored* p, int columns, const ScannedWindow& w, bool& in_gap) {
  FloatLanes groups[tile_blocks * block_groups];
#pragma clang loop unroll(disable)
  for (int g = 0; g < tile_blocks * block_groups; ++g) groups[g] = FloatLanes{};
  IntLanes gaps = {};
  each_group_of_tile<S>(p, columns, [&](int g, int valid, FloatLanes* x) {
#pragma clang loop unroll(disable)
    for (int v = 0; v < S::group_vectors; ++v) {
      gaps |= (x[v] > w.clamp_low) & (x[v] < w.gap_end);
      const FloatLanes leaf = leaf_scaled(x[v] > w.clamp_low ? x[v] : w.clamp_low, w.c, w.magic);
      const IntLanes counts = valid_lanes<S>(valid, v) & (x[v] != splat<FloatLanes>(negative_infinity));
      x[v] = select(counts, leaf, FloatLanes{});
    }
    groups[g] = S::group_vectors == 2 ? x[0] + x[1] : x[0];
  });
  for (int count = tile_blocks; count > 0; count /= tile_blocks)
#pragma clang loop unroll(disable)
    for (int b = 0; b < count; ++b) groups[b] = tree_of_16(groups + b * block_groups);
  in_gap = __builtin_reduce_or(gaps) != 0;
  return tree_across(groups[0]);
}

CANON_FN i32 nearest_integer(double x) {
  return (i32)((x + round_magic_wide) - round_magic_wide);
}

// `uses_pairs` becomes true where only pairs would do.
template<class S>
CANON_COLD Node tile_general(const typename S::Stored* p, int columns, const Scale& scale, bool& uses_pairs) {
  const TileRange range = scan_tile<S>(p, columns);
  if (range.poisoned) return poison_node();
  if (range.maximum == negative_infinity) return zero_node();
  const double c = (double)scale.c, top = (double)range.maximum * c;
  if (top <= 0x1p19 && top >= -0x1p19 && range.maximum <= scale.bound) {
    const i32 R = nearest_integer(top) - (120 - TileShape<S>::level);
    float clamp_low = range.minimum_finite, gap_end = negative_infinity; // clamps nothing
    if (!((double)range.minimum_finite * c >= (double)(R - 124) && range.minimum_finite >= -scale.bound)) {
      // Rounding these two to binary32 moves them by less than 0.07 in the exponent: far means n - R <= -123, and
      // whatever is not far has n - R >= -94 + level.
      clamp_low = (float)((double)(R - 124) / c);
      gap_end = (float)(((double)(R - 94 + TileShape<S>::level) + 0.1) / c);
    }
    if (clamp_low >= -scale.bound) {
      const ScannedWindow window = {splat<FloatLanes>(scale.c), splat<FloatLanes>(round_magic - (float)R),
                                    splat<FloatLanes>(clamp_low), splat<FloatLanes>(gap_end)};
      bool in_gap = false;
      const float sum = scanned_sum<S>(p, columns, window, in_gap);
      if (!in_gap) return normalised(Node{sum, R});
    }
  }
  uses_pairs = true;
  return tile_pairs<S>(p, columns, scale, false).node;
}

} // namespace canon

#endif
