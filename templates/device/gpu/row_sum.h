// The sum over a range of a row's columns by all warps of a block: the nodes of the range's aligned sub-trees, on a
// stack in the block's memory.
//
// The range is cut into tiles. Whole ones are dealt out to the warps; the first and the last one, where only a part is
// readable, are cut into pieces of at most a block of columns. Chunks of 256 tiles are joined at a time.
#ifndef BILOGP_DEVICE_GPU_ROW_SUM_H
#define BILOGP_DEVICE_GPU_ROW_SUM_H

#include "device/gpu/tile.h"

namespace canon {

constexpr int chunk_tiles = 256;
constexpr int tile_pieces_at_most = 24; // eight below a block's size on either side, three blocks, and a little more

// The block's memory for a sum.
struct SumSpace {
  Node tiles[chunk_tiles];
  Node pieces[2][tile_pieces_at_most]; // of the first and the last tile
  NodeStack stack;
};

// Columns [begin, live_end) are read, and [live_end, tree_end) are zeros.
template<class S> struct ColumnRange {
  static constexpr i64 tile_columns = TileShape<S>::columns;
  i64 begin, live_end, tree_end;

  // Tiles that hold a live column.
  CANON_MEMBER i64 first_tile() const { return begin / tile_columns; }
  CANON_MEMBER i64 tiles_end() const {
    return live_end > begin ? (live_end + tile_columns - 1) / tile_columns : first_tile();
  }
};

// Of all columns of a row; a few zeros more do not change its sum.
template<class S> CANON_FN ColumnRange<S> whole_row(i64 vocab) {
  constexpr i64 tile_columns = TileShape<S>::columns;
  return ColumnRange<S>{0, vocab, (vocab + tile_columns - 1) / tile_columns * tile_columns};
}

// The part of one tile that belongs to a range.
template<class S> struct TilePart {
  i64 begin, end, live_end; // columns
  CANON_MEMBER TilePart(const ColumnRange<S>& range, i64 tile) {
    begin = tile * TileShape<S>::columns;
    end = begin + TileShape<S>::columns;
    if (begin < range.begin) begin = range.begin;
    if (end > range.tree_end) end = range.tree_end;
    live_end = range.live_end;
  }
  CANON_MEMBER bool is_whole_tree() const { return end - begin == TileShape<S>::columns; }
  CANON_MEMBER bool is_whole() const { return is_whole_tree() && live_end >= end; }

  // Calls visit(index, begin, level) for the pieces from left to right.
  template<class Visit> CANON_MEMBER void each_piece(Visit visit) const {
    int index = 0;
    CANON_ROLLED
    for (i64 at = begin; at < end; ++index) {
      const i32 fitting = largest_level(at, end);
      const i32 level = fitting < TileShape<S>::block_level ? fitting : TileShape<S>::block_level;
      visit(index, at, level);
      at += (i64)1 << level;
    }
  }
};

// Joins nodes [begin, end) of an array in place, by one warp: afterwards the node of an aligned sub-tree inside the
// range is where its first node was.
CANON_COLD void join_in_place(Node* nodes, int begin, int end) {
  CANON_ROLLED
  for (int level = 1; (1 << level) <= end - begin; ++level) {
    const int width = 1 << level;
    CANON_ROLLED
    for (int at = lane_of_warp() << level; at < end; at += warp_lanes << level)
      if (at >= begin && at + width <= end) nodes[at] = joined(nodes[at], nodes[at + width / 2]);
    warp_barrier();
  }
}

CANON_COLD void push_node(NodeStack& stack, Node node, i64 begin, i32 level) {
  stack.push(node, begin, level);
}

// Work of all warps: the nodes of tiles [begin, end), which are in one chunk.
template<class S>
CANON_FN void sum_tiles(TileSums<S>& sums, const ColumnRange<S>& range, i64 begin, i64 end, SumSpace& space) {
  const i64 first = range.first_tile(), last = range.tiles_end() - 1;
  CANON_ROLLED
  for (int edge = 0; edge < (first == last ? 1 : 2); ++edge) {
    const i64 tile = edge == 0 ? first : last;
    const TilePart<S> part(range, tile);
    if (tile < begin || tile >= end || part.is_whole()) continue;
    part.each_piece([&](int index, i64 at, i32 level) {
      if ((index + 1) % block_warps != warp_of_block()) return; // the first warp may have a tile more than others
      const i64 live = part.live_end - at;
      Node node = zero_node();
      if (live > 0)
        node = piece_node<S>(sums.reader, sums.scale, at, 1 << level, live < 1 << level ? (int)live : 1 << level);
      if (lane_of_warp() == 0) space.pieces[edge][index] = node;
    });
  }
  CANON_ROLLED
  for (i64 tile = begin + warp_of_block(); tile < end; tile += block_warps) {
    if ((tile == first || tile == last) && !TilePart<S>(range, tile).is_whole()) continue;
    const Node node = sums.tile(tile * TileShape<S>::columns);
    if (lane_of_warp() == 0) space.tiles[tile % chunk_tiles] = node;
  }
}

// Work of the first warp: the nodes of tiles [begin, end), which are in one chunk, go on the stack. Returns the column
// behind them.
template<class S> CANON_FN i64 push_tiles(const ColumnRange<S>& range, i64 begin, i64 end, SumSpace& space) {
  const bool is_first_lane = lane_of_warp() == 0;
  const i64 first = range.first_tile(), last = range.tiles_end() - 1, chunk_begin = begin - begin % chunk_tiles;
  int from = (int)(begin - chunk_begin), to = (int)(end - chunk_begin);
  i64 behind = range.begin;
  CANON_ROLLED
  for (int edge = 0; edge < (first == last ? 1 : 2); ++edge) {
    const i64 tile = edge == 0 ? first : last;
    const TilePart<S> part(range, tile);
    if (tile < begin || tile >= end || part.is_whole()) continue;
    if (part.is_whole_tree()) {
      join_in_place(space.pieces[edge], 0, tile_blocks);
      if (is_first_lane) space.tiles[tile % chunk_tiles] = space.pieces[edge][0];
    } else if (edge == 0) {
      ++from;
    } else {
      --to;
    }
  }
  // Zeros that belong to the range make the sub-tree of the last tiles whole.
  const int filled = to;
  CANON_ROLLED
  while (to > from && (to & (to - 1)) != 0 && (chunk_begin + to + 1) * TileShape<S>::columns <= range.tree_end) ++to;
  CANON_ROLLED
  for (int i = filled + lane_of_warp(); i < to; i += warp_lanes) space.tiles[i] = zero_node();
  warp_barrier();
  join_in_place(space.tiles, from, to);
  // In column order: the pieces of a first tile, whole tiles, the pieces of a last tile.
  CANON_ROLLED
  for (int turn = 0; turn < 3; ++turn) {
    if (turn == 1) {
      CANON_ROLLED
      for (int at = from; at < to;) {
        const i32 level = largest_level(at, to);
        const i64 column = (chunk_begin + at) * TileShape<S>::columns;
        if (is_first_lane) push_node(space.stack, space.tiles[at], column, level + TileShape<S>::level);
        at += 1 << level;
        behind = (chunk_begin + at) * TileShape<S>::columns;
      }
      continue;
    }
    const int edge = turn / 2;
    const i64 tile = edge == 0 ? first : last;
    const TilePart<S> part(range, tile);
    if (tile < begin || tile >= end || part.is_whole_tree() || (edge == 1 && first == last)) continue;
    part.each_piece([&](int index, i64 at, i32 level) {
      if (is_first_lane) push_node(space.stack, space.pieces[edge][index], at, level);
    });
    behind = part.end;
  }
  return behind;
}

// Called by all threads of the block. Afterwards the first warp finds the nodes of [range.begin, the returned column)
// on the stack; all columns of the range behind it are zeros. The other warps must not look at either.
template<class S> CANON_FN i64 sum_range(TileSums<S>& sums, const ColumnRange<S>& range, SumSpace& space) {
  const i64 tiles_end = range.tiles_end();
  i64 behind = range.begin;
  block_barrier(); // the first warp may still be at the row before this one
  if (thread_of_block() == 0) space.stack.size = 0;
  CANON_ROLLED
  for (i64 begin = range.first_tile(); begin < tiles_end;) {
    const i64 chunk_end = begin - begin % chunk_tiles + chunk_tiles,
              end = chunk_end < tiles_end ? chunk_end : tiles_end;
    sum_tiles(sums, range, begin, end, space);
    block_barrier();
    if (warp_of_block() == 0) behind = push_tiles(range, begin, end, space);
    begin = end;
    if (begin < tiles_end) block_barrier();
  }
  warp_barrier();
  return behind;
}

} // namespace canon

#endif
