// The sum over whole tiles of a row by all warps of a block: their nodes are joined and pushed on a stack in the
// block's memory.
#ifndef BILOGP_DEVICE_GPU_ROW_SUM_H
#define BILOGP_DEVICE_GPU_ROW_SUM_H

#include "device/gpu/tile.h"

namespace canon {

constexpr int chunk_tiles = 256; // that are summed before they are joined

// The block's memory for a sum.
struct SumSpace {
  Node tiles[chunk_tiles];
  NodeStack stack;
};

// Tiles [begin, end) of a row; tree_end: tiles of the row's tree from there on do not belong to the sum, those before
// it that are not summed are zeros.
struct TileRange {
  u32 begin, end, tree_end;
};

// Of columns [begin, end), where `begin` is a tile's and zeros may be added behind `end`: they change no sum.
template<class S> CANON_FN TileRange tiles_of(u32 begin, u32 end) {
  constexpr u32 columns = TileShape<S>::columns;
  return TileRange{begin / columns, end > begin ? (end - 1) / columns + 1 : begin / columns, 0xffffffffu};
}

// Joins nodes [begin, end) of an array in place, by one warp: afterwards the node of an aligned sub-tree inside the
// range is where its first node was.
CANON_FN void join_in_place(Node* nodes, int begin, int end) {
  CANON_ROLLED
  for (int level = 1; (1 << level) <= end - begin; ++level) {
    const int width = 1 << level;
    CANON_ROLLED
    for (int at = lane_of_warp() << level; at < end; at += warp_lanes << level)
      if (at >= begin && at + width <= end) nodes[at] = joined(nodes[at], nodes[at + width / 2]);
    warp_barrier();
  }
}

// By the first lane of a warp.
CANON_COLD void push_node(NodeStack& stack, Node node, i64 begin, i32 level) {
  stack.push(node, begin, level);
}

// By the first warp: nodes [begin, end) of the chunk whose first tile is `chunk` go on the stack; more behind them,
// that are zeros, where they make a sub-tree whole. Returns the tile behind.
template<class S> CANON_FN u32 push_tiles(SumSpace& space, u32 chunk, int begin, int end, u32 tree_end) {
  const int lane = lane_of_warp();
  const i32 power = 1 << tree_height(end);
  if (chunk + power <= tree_end) {
    CANON_ROLLED
    for (int i = end + lane; i < power; i += warp_lanes) space.tiles[i] = zero_node();
    end = power;
  }
  warp_barrier();
  join_in_place(space.tiles, begin, end);
  CANON_ROLLED
  for (int at = begin; at < end;) {
    const i32 level = largest_level(at, end);
    if (lane == 0)
      push_node(space.stack, space.tiles[at], (i64)(chunk + at) << TileShape<S>::level, level + TileShape<S>::level);
    at += 1 << level;
  }
  return chunk + end;
}

// Called by all threads of the block with an empty stack, or one that ends where the first tile begins. Afterwards the
// first warp finds the tiles' nodes on the stack; the others must not look. Returns the tile behind, to the first warp.
template<class S> CANON_FN u32 sum_tiles(TileSums<S>& sums, const TileRange& range, SumSpace& space) {
  u32 behind = range.begin;
  CANON_ROLLED
  for (u32 begin = range.begin; begin < range.end;) {
    const u32 chunk = begin - begin % chunk_tiles;
    const int from = (int)(begin - chunk);
    const int to = (int)(range.end - chunk < chunk_tiles ? range.end - chunk : chunk_tiles);
    // Backwards: the last tile of a row may be in pieces, which takes longest.
    CANON_ROLLED
    for (int i = to - 1 - warp_of_block(); i >= from; i -= block_warps) {
      const Node node = sums.tile((chunk + i) << TileShape<S>::level);
      if (lane_of_warp() == 0) space.tiles[i] = node;
    }
    block_barrier();
    if (warp_of_block() == 0) behind = push_tiles<S>(space, chunk, from, to, range.tree_end);
    begin = chunk + to;
    if (begin < range.end) block_barrier();
  }
  warp_barrier();
  return behind;
}

// Before the sum of another row: nobody is at the one before it any more.
CANON_FN void begin_row(SumSpace& space) {
  block_barrier();
  if (thread_of_block() == 0) space.stack.size = 0;
}

} // namespace canon

#endif
