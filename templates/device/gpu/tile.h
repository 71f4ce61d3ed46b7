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

// Column of this lane's vector in block j of a tile.
template<class S> CANON_FN int lane_column(int j) {
  return j * TileShape<S>::block_columns + lane_of_warp() * S::vector_columns;
}

// All of a lane's vectors of the tile that begins at `column`; every column is readable.
template<class S> CANON_FN void read_tile(const RowReader<S>& reader, i64 column, Vector* v) {
  if (reader.phase == 0) {
    CANON_UNROLL
    for (int j = 0; j < tile_blocks; ++j) v[j] = load_vector(reader.row + column + lane_column<S>(j));
    return;
  }
  CANON_UNROLL
  for (int j = 0; j < tile_blocks; ++j) {
    const i64 at = column + lane_column<S>(j);
    const bool at_an_end = j == 0 || j == tile_blocks - 1; // elsewhere the aligned vectors around are in the tile
    v[j] = at_an_end ? reader.guarded(at, 0, S::vector_columns) : reader.shifted(at);
  }
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

// Node of the `columns` columns from `column` on, all in one block, of which the first `live` are readable and the rest
// zero; both are the begin and the size of aligned sub-trees. Not inlined: it is long, and rarely in a hurry.
template<class S>
CANON_COLD Node piece_node(const RowReader<S> reader, const Scale scale, i64 column, int columns, int live) {
  const int block_begin = (int)column & (TileShape<S>::block_columns - 1);
  const int end = block_begin + (live < columns ? live : columns);
  const int lane_begin = lane_of_warp() * S::vector_columns;
  const int first = block_begin - lane_begin, last = end - lane_begin;
  LaneColumns<S> lane;
  lane.first = first < 0 ? 0 : first;
  lane.last = last < S::vector_columns ? last : S::vector_columns;
  lane.vector = reader.guarded(column - block_begin + lane_begin, lane.first, lane.last);
  return block_node<S>(lane, scale);
}

template<class S> CANON_FN Node general_tile(const RowReader<S>& reader, i64 column, const Scale& scale) {
  constexpr int width = TileShape<S>::block_columns;
  Node mine = zero_node();
  CANON_ROLLED
  for (int j = 0; j < tile_blocks; ++j) {
    const Node node = piece_node<S>(reader, scale, column + j * width, width, width);
    if (lane_of_warp() == j) mine = node;
  }
  return warp_joined(mine, tile_blocks);
}

// What a warp keeps between the tiles of a row.
template<class S> struct TileSums {
  RowReader<S> reader;
  Scale scale;
  u32 plain_limit;            // of magnitudes
  int to_skip = 0, fails = 0; // tiles that are not tried plainly; grows with every failed try, shrinks with success

  CANON_MEMBER TileSums(const RowReader<S>& row, const Scale& s)
      : reader(row), scale(s), plain_limit(S::magnitude_limit((plain_exponent_limit / s.c) * 0.9999f)) {}

  // Node of the whole tile that begins at `column`; in the first lanes.
  CANON_MEMBER Node tile(i64 column) {
    if (to_skip == 0) {
      Vector v[tile_blocks];
      read_tile(reader, column, v);
      u32 largest = 0;
      const float sum = plain_sum<S>(v, scale.c, largest);
      if (warp_all(S::within(largest, plain_limit))) {
        fails >>= 1;
        return normalised(Node{sum, plain_reference});
      }
      fails = fails < 8 ? 2 * fails + 1 : fails;
      to_skip = fails;
    } else {
      --to_skip;
    }
    return general_tile(reader, column, scale);
  }
};

} // namespace canon

#endif
