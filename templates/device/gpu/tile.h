// The node of one whole tile, that one warp works on: four vectors per lane, 1024 neighbouring columns (512 of
// float32), aligned in the vocabulary.
//
// plain: every |x| * c <= 115, leaves p * 2^(n - 6) add as binary32; the largest magnitude checks it. A tile that fails
// is read again, block by block, by general_block.h.
#ifndef BILOGP_DEVICE_GPU_TILE_H
#define BILOGP_DEVICE_GPU_TILE_H

#include "device/gpu/general_block.h"
#include "device/gpu/row_reader.h"

namespace canon {

constexpr i32 plain_reference = 6;
constexpr float plain_exponent_limit = 115.0f;
constexpr int tile_blocks = 4;

template<class S> struct TileShape {
  static constexpr int block_level = S::vector_level + 5, level = block_level + 2; // log2 of the columns
  static constexpr int block_columns = 1 << block_level, columns = 1 << level;
};

// Column of this lane's vector in block j of the tile that begins at `column`.
template<class S> CANON_FN u32 lane_column(u32 column, int j) {
  return column + j * TileShape<S>::block_columns + lane_of_warp() * S::vector_columns;
}

// Sum of a tile's leaves times 2^-6, and the largest magnitude in stored bits, of this lane.
template<class S> CANON_FN float plain_sum(const Vector* v, float c, u32& largest) {
  const float magic = round_magic - (float)plain_reference;
  float sums[tile_blocks];
  CANON_UNROLL
  for (int j = 0; j < tile_blocks; ++j) {
    CANON_UNROLL
    for (int i = 0; i < 4; ++i) largest = S::grown(largest, v[j].word[i]);
    float leaf[S::vector_columns];
    CANON_UNROLL
    for (int i = 0; i < S::vector_columns; ++i) leaf[i] = leaf_scaled(S::column(v[j], i), c, magic);
    sums[j] = tree_of<S::vector_columns>(leaf);
  }
  return warp_tree_of_4(sums);
}

// Node of the `columns` columns from `column` on, an aligned sub-tree of at most a block; those that are not readable
// are zeros. Not inlined: it is long, and rarely in a hurry.
template<class S>
CANON_COLD Node general_node(const RowReader<S> reader, float c, float bound, u32 column, u32 columns) {
  const u32 in_block = column % TileShape<S>::block_columns, lane_begin = lane_of_warp() * S::vector_columns;
  const u32 live = reader.end - column, end = in_block + (live < columns ? live : columns);
  const int first = (int)(in_block - lane_begin), last = (int)(end - lane_begin);
  LaneColumns<S> lane;
  lane.first = first < 0 ? 0 : first;
  lane.last = last < S::vector_columns ? last : S::vector_columns;
  lane.vector = reader.guarded(column - in_block + lane_begin, lane.first, lane.last);
  return block_node<S>(lane, c, bound);
}

// What a warp keeps between the tiles of a row.
template<class S> struct TileSums {
  static constexpr u32 columns = TileShape<S>::columns;
  RowReader<S> reader;
  float c, bound;
  u32 plain_limit;            // of magnitudes
  int to_skip = 0, fails = 0; // tiles that are not tried plainly; grows with every failed try, shrinks with success

  CANON_MEMBER TileSums(const RowReader<S>& row, const Scale& scale)
      : reader(row), c(scale.c), bound(scale.bound),
        plain_limit(S::magnitude_limit((plain_exponent_limit / scale.c) * 0.9999f)) {}

  // Node of the tile that begins at `column`, which is readable; in the first lanes. Columns that are not are zeros.
  CANON_MEMBER Node tile(u32 column) {
    if (to_skip == 0 && reader.may_read(column, columns)) {
      Vector v[tile_blocks];
      if (reader.phase == 0) { // two loops, so that all loads are under way before one is waited for
        CANON_UNROLL
        for (int j = 0; j < tile_blocks; ++j) v[j] = reader.aligned(lane_column<S>(column, j));
      } else {
        CANON_UNROLL
        for (int j = 0; j < tile_blocks; ++j) v[j] = reader.shifted(lane_column<S>(column, j));
      }
      u32 largest = 0;
      const float sum = plain_sum<S>(v, c, largest);
      if (warp_all(S::within(largest, plain_limit))) {
        fails >>= 1;
        return normalised(Node{sum, plain_reference});
      }
      fails = fails < 8 ? 2 * fails + 1 : fails;
      to_skip = fails;
    } else if (to_skip > 0) {
      --to_skip;
    }
    Node mine = zero_node();
    CANON_ROLLED
    for (int j = 0; j < tile_blocks; ++j) {
      const u32 at = column + j * TileShape<S>::block_columns;
      if (at >= reader.end) break;
      const Node node = general_node<S>(reader, c, bound, at, TileShape<S>::block_columns);
      if (lane_of_warp() == j) mine = node;
    }
    return warp_joined(mine, tile_blocks);
  }
};

} // namespace canon

#endif
