// The node of one tile: up to 256 vectors of neighbouring columns, aligned in the vocabulary.
//
// Three ways give the same bits, from fast to general (the windows W0, W1, W2 of the contract):
//   plain    every |x| * c <= 115: leaves p * 2^(n - 6) add as binary32; one integer maximum checks it.
//   scanned  a first look finds maximum and minimum; the reference R puts the maximum high in the binary32 range; -inf
//            becomes a true zero. Where not every finite leaf fits, far ones are raised to one that is absorbed,
//            provided none lies in the gap between.
//   pairs    (p, n) pairs, for any row.
#ifndef BILOGP_DEVICE_CPU_TILE_H
#define BILOGP_DEVICE_CPU_TILE_H

#include "canon/leaf.h"
#include "canon/node.h"
#include "device/cpu/tree.h"

namespace canon {

constexpr int block_groups = 16, tile_blocks = 16;
constexpr i32 plain_reference = 6;
constexpr float plain_exponent_limit = 115.0f;

template<class S> struct TileShape {
  static constexpr int block_columns = block_groups * S::group_columns;
  static constexpr int level = S::group_columns == 32 ? 13 : 12; // log2 of the columns
  static constexpr int columns = tile_blocks * block_columns;
};

enum class TileMode { plain, scanned };

// What a pass over a tile needs; filled per row (plain) or per tile (scanned).
template<class S> struct TilePass {
  float c, magic;                // magic = round_magic - R
  float clamp_low, gap_end;      // scanned: x <= clamp_low is far, clamp_low < x < gap_end fails
  typename S::Magnitude biggest; // plain: running maximum of |stored bits|
  IntLanes in_gap;
};

template<TileMode Mode, class S> CANON_FN FloatLanes tile_leaf(FloatLanes x, TilePass<S>& pass) {
  const FloatLanes c = splat<FloatLanes>(pass.c), magic = splat<FloatLanes>(pass.magic);
  if constexpr (Mode == TileMode::plain) return leaf_scaled(x, c, magic);
  const FloatLanes low = splat<FloatLanes>(pass.clamp_low);
  pass.in_gap |= (x > low) & (x < splat<FloatLanes>(pass.gap_end));
  const FloatLanes leaf = leaf_scaled(x > low ? x : low, c, magic);
  return select(x == splat<FloatLanes>(negative_infinity), splat<FloatLanes>(0.0f), leaf);
}

// Which lanes of a group's vector v stand for the first `valid` columns of the group.
template<class S> CANON_FN IntLanes valid_lanes(int valid, int v) {
  constexpr IntLanes index = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return (index * S::group_vectors + v) < (IntLanes{} + valid);
}

template<TileMode Mode, class S> CANON_FN FloatLanes tile_group(const typename S::Stored* p, TilePass<S>& pass) {
  if constexpr (Mode == TileMode::plain) {
    const typename S::Magnitude m = S::magnitude(p);
    pass.biggest = m > pass.biggest ? m : pass.biggest;
  }
  FloatLanes x[S::group_vectors];
  S::read(p, x);
  if constexpr (S::group_vectors == 2) return tile_leaf<Mode>(x[0], pass) + tile_leaf<Mode>(x[1], pass);
  return tile_leaf<Mode>(x[0], pass);
}

// The last, incomplete group: missing columns repeat one that is there, so that they cannot fail a check, and their
// leaves are replaced by true zeros.
template<class S> CANON_FN void copy_group(const typename S::Stored* p, int valid, typename S::Stored* copy) {
  for (int i = 0; i < S::group_columns; ++i) copy[i] = load(p + (i < valid ? i : 0));
}
template<TileMode Mode, class S>
CANON_FN FloatLanes tile_last_group(const typename S::Stored* p, int valid, TilePass<S>& pass) {
  typename S::Stored copy[S::group_columns];
  copy_group<S>(p, valid, copy);
  if constexpr (Mode == TileMode::plain) {
    const typename S::Magnitude m = S::magnitude(copy);
    pass.biggest = m > pass.biggest ? m : pass.biggest;
  }
  FloatLanes x[S::group_vectors];
  S::read(copy, x);
  FloatLanes sum = select(valid_lanes<S>(valid, 0), tile_leaf<Mode>(x[0], pass), splat<FloatLanes>(0.0f));
  if constexpr (S::group_vectors == 2)
    sum = sum + select(valid_lanes<S>(valid, 1), tile_leaf<Mode>(x[1], pass), splat<FloatLanes>(0.0f));
  return sum;
}

template<TileMode Mode, class S>
CANON_COLD FloatLanes last_block(const typename S::Stored* p, int columns, TilePass<S>& pass) {
  FloatLanes groups[block_groups];
  const int whole = columns / S::group_columns, rest = columns % S::group_columns;
  for (int g = 0; g < block_groups; ++g) {
    if (g < whole)
      groups[g] = tile_group<Mode>(p + g * S::group_columns, pass);
    else if (g == whole && rest > 0)
      groups[g] = tile_last_group<Mode>(p + g * S::group_columns, rest, pass);
    else
      groups[g] = splat<FloatLanes>(0.0f);
  }
  return tree_of<4>(groups);
}

// Sum of `columns` leaves, 1 to TileShape<S>::columns, times 2^-R.
template<TileMode Mode, class S> CANON_FN float tile_tree(const typename S::Stored* p, int columns, TilePass<S>& pass) {
  constexpr int block_columns = TileShape<S>::block_columns;
  FloatLanes blocks[tile_blocks];
  const int whole = columns / block_columns;
  for (int b = 0; b < whole; ++b) {
    const typename S::Stored* q = p + b * block_columns;
    FloatLanes groups[block_groups];
#pragma clang loop unroll_count(4)
    for (int g = 0; g < block_groups; ++g) {
      prefetch(q + g * S::group_columns);
      groups[g] = tile_group<Mode>(q + g * S::group_columns, pass);
    }
    blocks[b] = tree_of<4>(groups);
  }
  int filled = whole;
  if (columns % block_columns)
    blocks[filled++] = last_block<Mode, S>(p + whole * block_columns, columns % block_columns, pass);
  while (filled < tile_blocks) blocks[filled++] = splat<FloatLanes>(0.0f);
  return tree_across(tree_of<4>(blocks));
}

template<class V> CANON_FN auto largest_lane(V v) {
  return __builtin_reduce_max(v);
}

struct TileRange {
  float maximum, minimum_finite; // of the columns; -inf and +inf where there is none
  bool poisoned;
};

template<class S> CANON_FN TileRange scan_tile(const typename S::Stored* p, int columns) {
  FloatLanes high = splat<FloatLanes>(negative_infinity), low_finite = -high;
  IntLanes unordered = {};
  for (int i = 0; i < columns; i += S::group_columns) {
    typename S::Stored copy[S::group_columns];
    const typename S::Stored* q = p + i;
    if (columns - i < S::group_columns) {
      copy_group<S>(q, columns - i, copy);
      q = copy;
    }
    FloatLanes x[S::group_vectors];
    S::read(q, x);
    for (int v = 0; v < S::group_vectors; ++v) {
      high = x[v] > high ? x[v] : high;
      const FloatLanes finite = x[v] == splat<FloatLanes>(negative_infinity) ? low_finite : x[v];
      low_finite = finite < low_finite ? finite : low_finite;
      unordered |= x[v] != x[v];
    }
  }
  TileRange range;
  range.maximum = __builtin_reduce_max(high);
  range.minimum_finite = __builtin_reduce_min(low_finite);
  range.poisoned = __builtin_reduce_or(unordered) != 0 || range.maximum == -negative_infinity;
  return range;
}

template<class S> CANON_COLD Node tile_pairs(const typename S::Stored* p, int columns, const Scale& scale) {
  PairVector blocks[tile_blocks];
  const PairVector zero = {FloatLanes{}, IntLanes{} + zero_exponent};
  for (int b = 0; b < tile_blocks; ++b) {
    PairVector groups[block_groups];
    for (int g = 0; g < block_groups; ++g) {
      const int begin = (b * block_groups + g) * S::group_columns, valid = columns - begin;
      groups[g] = zero;
      if (valid <= 0) continue;
      typename S::Stored copy[S::group_columns];
      copy_group<S>(p + begin, valid < S::group_columns ? valid : S::group_columns, copy);
      FloatLanes x[S::group_vectors];
      S::read(copy, x);
      PairVector leaf[2];
      for (int v = 0; v < S::group_vectors; ++v) {
        const IntLanes is_valid = valid_lanes<S>(valid, v);
        leaf_pair<FloatLanes>(x[v], scale, leaf[v].s, leaf[v].R);
        leaf[v].s = select(is_valid, leaf[v].s, zero.s);
        leaf[v].R = select(is_valid, leaf[v].R, zero.R);
      }
      groups[g] = S::group_vectors == 2 ? pair_sums(leaf[0].s, leaf[0].R, leaf[1].s, leaf[1].R) : leaf[0];
    }
    blocks[b] = pair_tree(groups);
  }
  return pair_across(pair_tree(blocks));
}

CANON_FN i32 nearest_integer(double x) {
  return (i32)((x + round_magic_wide) - round_magic_wide);
}

// After the plain way failed.
template<class S> CANON_COLD Node tile_scanned(const typename S::Stored* p, int columns, const Scale& scale) {
  const TileRange range = scan_tile<S>(p, columns);
  if (range.poisoned) return poison_node();
  if (range.maximum == negative_infinity) return zero_node();
  const double c = (double)scale.c, top = (double)range.maximum * c;
  if (!(top <= 0x1p19 && top >= -0x1p19 && range.maximum <= scale.bound)) return tile_pairs<S>(p, columns, scale);
  const i32 R = nearest_integer(top) - (120 - TileShape<S>::level);
  TilePass<S> pass = {};
  pass.c = scale.c;
  pass.magic = round_magic - (float)R;
  if ((double)range.minimum_finite * c >= (double)(R - 124) && range.minimum_finite >= -scale.bound) {
    pass.clamp_low = range.minimum_finite; // clamps nothing
    pass.gap_end = negative_infinity;
  } else {
    // Rounding these two to binary32 moves them by less than 0.07 in the exponent: far means n - R <= -123, and
    // whatever is not far has n - R >= -94 + level.
    pass.clamp_low = (float)((double)(R - 124) / c);
    pass.gap_end = (float)(((double)(R - 94 + TileShape<S>::level) + 0.1) / c);
    if (pass.clamp_low < -scale.bound) return tile_pairs<S>(p, columns, scale);
  }
  const float sum = tile_tree<TileMode::scanned, S>(p, columns, pass);
  if (__builtin_reduce_or(pass.in_gap) != 0) return tile_pairs<S>(p, columns, scale);
  return normalised(Node{sum, R});
}

// What a row's tiles share.
template<class S> struct TileSums {
  Scale scale;
  u32 plain_limit;       // of |stored bits|
  bool try_plain = true; // whether the last tile was plain: masked rows pay for the failed try once

  CANON_MEMBER explicit TileSums(const Scale& s)
      : scale(s), plain_limit(S::magnitude_limit((plain_exponent_limit / s.c) * 0.9999f)) {}

  // Node of `columns` columns, 0 to the tile's, padded with zeros.
  CANON_MEMBER Node sum(const typename S::Stored* p, int columns) {
    if (columns <= 0) return zero_node();
    if (try_plain) {
      TilePass<S> pass = {};
      pass.c = scale.c;
      pass.magic = round_magic - (float)plain_reference;
      const float s = tile_tree<TileMode::plain, S>(p, columns, pass);
      if ((u32)largest_lane(pass.biggest) <= plain_limit) return normalised(Node{s, plain_reference});
      try_plain = false;
    }
    return tile_scanned<S>(p, columns, scale);
  }
};

// Pushes the nodes of columns [begin, end) of a vocabulary of full_vocab columns; `row` points at column `begin`.
// Columns from `vocab_size` on are zero and not looked at.
template<class S>
CANON_FN void push_columns(NodeStack& stack, const typename S::Stored* row, i64 begin, i64 end, i64 full_vocab,
                           i64 vocab_size, TileSums<S>& tiles) {
  const i64 tree_end = padded_end(end, full_vocab), live_end = vocab_size < end ? vocab_size : end;
  i64 at = begin;
  while (at < tree_end) {
    i32 level = largest_level(at, tree_end);
    if (at < live_end && level > TileShape<S>::level) level = TileShape<S>::level;
    const i64 width = (i64)1 << level, live = live_end - at;
    stack.push(tiles.sum(row + (at - begin), (int)(live < 0 ? 0 : live < width ? live : width)), at, level);
    at += width;
  }
}

} // namespace canon

#endif
