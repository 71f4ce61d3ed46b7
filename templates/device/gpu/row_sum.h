// The sum over a range of a row's columns by all warps of a block: the nodes of the range's aligned sub-trees, on a
// stack in the block's memory.
//
// The range is cut into tiles. Whole ones are dealt out to the warps; up to two at the ends, of which only a part is
// readable, are cut into pieces of at most a block of columns. Chunks of 256 tiles are joined at a time.
#ifndef BILOGP_DEVICE_GPU_ROW_SUM_H
#define BILOGP_DEVICE_GPU_ROW_SUM_H

#include "device/gpu/tile.h"

namespace canon {

constexpr int chunk_level = 8, chunk_tiles = 1 << chunk_level;
constexpr int edge_pieces_at_most = 32; // eight below a block's size and seven blocks on either side

// The block's memory for a sum.
struct SumSpace {
  Node tiles[chunk_tiles];
  Node pieces[2][edge_pieces_at_most];
  NodeStack stack;
};

// Columns [begin, live_end) are read, and [live_end, tree_end) are zeros.
struct ColumnRange {
  i64 begin, live_end, tree_end;
};

// One tile at an end of the range: its columns [begin, end) belong to the range.
template<class S> struct EdgeTile {
  i64 tile, begin, end, live_end;
  bool exists;

  CANON_MEMBER bool is_whole() const { return end - begin == TileShape<S>::columns; }

  // Calls visit(index, begin, level) for the pieces from left to right.
  template<class Visit> CANON_MEMBER void each_piece(Visit visit) const {
    if (!exists) return;
    int index = 0;
    for (i64 at = begin; at < end; ++index) {
      const i32 fitting = largest_level(at, end);
      const i32 level = fitting < TileShape<S>::block_level ? fitting : TileShape<S>::block_level;
      visit(index, at, level);
      at += (i64)1 << level;
    }
  }
};

template<class S> struct RangeTiles {
  static constexpr i64 size = TileShape<S>::columns;
  i64 first, end; // tiles that hold a live column
  EdgeTile<S> edge[2];

  CANON_MEMBER explicit RangeTiles(const ColumnRange& range) {
    first = range.begin / size;
    end = range.live_end > range.begin ? (range.live_end + size - 1) / size : first;
    edge[0] = at(range, first);
    edge[1] = at(range, end - 1);
    edge[0].exists = end > first && needs_pieces(edge[0]);
    edge[1].exists = end > first + 1 && needs_pieces(edge[1]);
  }
  CANON_MEMBER static EdgeTile<S> at(const ColumnRange& range, i64 tile) {
    EdgeTile<S> e;
    e.tile = tile;
    e.begin = tile * size > range.begin ? tile * size : range.begin;
    e.end = (tile + 1) * size < range.tree_end ? (tile + 1) * size : range.tree_end;
    e.live_end = range.live_end;
    return e;
  }
  CANON_MEMBER static bool needs_pieces(const EdgeTile<S>& e) { return !e.is_whole() || e.live_end < e.end; }
  CANON_MEMBER bool is_edge(i64 tile) const {
    return (edge[0].exists && tile == edge[0].tile) || (edge[1].exists && tile == edge[1].tile);
  }
};

// Joins nodes [begin, end) of an array in place, by one warp: afterwards the node of an aligned sub-tree inside the
// range is where its first node was.
CANON_FN void join_in_place(Node* nodes, int begin, int end) {
  for (int level = 1; (1 << level) <= end - begin; ++level) {
    const int width = 1 << level;
    for (int at = lane_of_warp() << level; at < end; at += warp_lanes << level)
      if (at >= begin && at + width <= end) nodes[at] = joined(nodes[at], nodes[at + width / 2]);
    warp_barrier();
  }
}

// Work of all warps: the nodes of the pieces, and of the tiles of chunk `chunk`.
template<class S>
CANON_FN void sum_tiles(TileSums<S>& sums, const RangeTiles<S>& tiles, i64 begin, i64 end, SumSpace& space) {
  for (int e = 0; e < 2; ++e)
    if (tiles.edge[e].tile >= begin && tiles.edge[e].tile < end)
      tiles.edge[e].each_piece([&](int index, i64 at, i32 level) {
        if (index % block_warps != block_warps - 1 - warp_of_block()) return; // the last warps have fewer tiles
        const Node node =
            at < tiles.edge[e].live_end ? sums.piece(at, 1 << level, tiles.edge[e].live_end - at) : zero_node();
        if (lane_of_warp() == 0) space.pieces[e][index] = node;
      });
  for (i64 tile = begin + warp_of_block(); tile < end; tile += block_warps) {
    if (tiles.is_edge(tile)) continue;
    const Node node = sums.tile(tile * TileShape<S>::columns);
    if (lane_of_warp() == 0) space.tiles[tile % chunk_tiles] = node;
  }
}

// Work of the first warp: the nodes of tiles [begin, end) of one chunk go on the stack. Returns the column behind them.
template<class S>
CANON_FN i64 push_tiles(const RangeTiles<S>& tiles, i64 begin, i64 end, const ColumnRange& range, SumSpace& space) {
  const bool is_first = lane_of_warp() == 0;
  const i64 chunk_begin = begin - begin % chunk_tiles;
  int from = (int)(begin - chunk_begin), to = (int)(end - chunk_begin);
  for (int e = 0; e < 2; ++e) {
    const EdgeTile<S>& edge = tiles.edge[e];
    if (!edge.exists || edge.tile < begin || edge.tile >= end) continue;
    if (edge.is_whole()) {
      join_in_place(space.pieces[e], 0, tile_blocks);
      if (is_first) space.tiles[edge.tile % chunk_tiles] = space.pieces[e][0];
    } else if (e == 0) {
      ++from;
    } else {
      --to;
    }
  }
  // Zeros that belong to the range make the sub-tree of the last tiles whole.
  const int filled = to;
  while (to > from && (to & (to - 1)) != 0 && (chunk_begin + to + 1) * TileShape<S>::columns <= range.tree_end) ++to;
  for (int i = filled + lane_of_warp(); i < to; i += warp_lanes) space.tiles[i] = zero_node();
  warp_barrier();
  join_in_place(space.tiles, from, to);
  i64 behind = (chunk_begin + to) * TileShape<S>::columns;
  const auto push_pieces = [&](int e) {
    const EdgeTile<S>& edge = tiles.edge[e];
    if (!edge.exists || edge.is_whole() || edge.tile < begin || edge.tile >= end) return;
    if (is_first)
      edge.each_piece([&](int index, i64 at, i32 level) { space.stack.push(space.pieces[e][index], at, level); });
    if (edge.end > behind) behind = edge.end;
  };
  push_pieces(0);
  for (int at = from; is_first && at < to;) {
    const i32 level = largest_level(at, to);
    space.stack.push(space.tiles[at], (chunk_begin + at) * TileShape<S>::columns, level + TileShape<S>::level);
    at += 1 << level;
  }
  push_pieces(1);
  return behind;
}

// Called by all threads of the block. Afterwards the first warp finds the nodes of [range.begin, the returned column)
// on the stack; all columns behind it are zeros. The stack is of no use to the other warps.
template<class S> CANON_FN i64 sum_range(TileSums<S>& sums, const ColumnRange& range, SumSpace& space) {
  const RangeTiles<S> tiles(range);
  i64 behind = range.begin;
  block_barrier(); // the first warp may still be at the row before this one
  if (thread_of_block() == 0) space.stack.size = 0;
  for (i64 begin = tiles.first; begin < tiles.end;) {
    const i64 chunk_end = begin - begin % chunk_tiles + chunk_tiles,
              end = chunk_end < tiles.end ? chunk_end : tiles.end;
    sum_tiles(sums, tiles, begin, end, space);
    block_barrier();
    if (warp_of_block() == 0) behind = push_tiles(tiles, begin, end, range, space);
    begin = end;
    if (begin < tiles.end) block_barrier();
  }
  warp_barrier();
  return behind;
}

} // namespace canon

#endif
