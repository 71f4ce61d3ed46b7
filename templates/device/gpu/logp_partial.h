// logp_partial on a GPU, the plain plan: a block per row of the shard.
//
// Tiles that the shard holds only in part, at its ends, are cut into pieces: aligned sub-trees of at most a block of
// columns.
#ifndef BILOGP_DEVICE_GPU_LOGP_PARTIAL_H
#define BILOGP_DEVICE_GPU_LOGP_PARTIAL_H

#include "device/gpu/row_sum.h"
#include "rows/specialization.h"

#include "device/gpu/plan.h"

namespace canon {

CANON_FN void write_node(const LogpPartialArguments& a, const RowPlace& row, i64 k, Node node) {
  i32 words[2];
  store_node(words, node);
  i32* out = a.nodes + row_offset(row, a.options, a.node_strides) + k * a.node_stride_k;
  store(out, words[0]);
  store(out + 1, words[1]);
}

// By one warp: the nodes of the stack; or `constant` in the place of each node of columns [begin, end).
CANON_FN void write_nodes(const LogpPartialArguments& a, const RowPlace& row, const NodeStack& stack) {
  CANON_ROLLED
  for (int k = lane_of_warp(); k < stack.size; k += warp_lanes) write_node(a, row, k, stack.nodes[k]);
}
CANON_FN void write_constant_nodes(const LogpPartialArguments& a, const RowPlace& row, i64 begin, i64 end,
                                   Node constant) {
  i64 k = 0;
  CANON_ROLLED
  for (i64 at = begin; at < end; at += (i64)1 << largest_level(at, end), ++k)
    if (lane_of_warp() == k % warp_lanes) write_node(a, row, k, constant);
}

constexpr int pieces_at_most = 64; // fewer than two per level below a block's and three blocks, at each end

struct PartialSpace {
  SumSpace sum;
  struct {
    u32 begin;
    i32 level;
    Node node;
  } pieces[pieces_at_most];
  int front_pieces, all_pieces;
};

// By one thread: the pieces of columns [begin, end) follow those that are there.
CANON_COLD void list_pieces(PartialSpace& space, i64 begin, i64 end) {
  CANON_ROLLED
  for (i64 at = begin; at < end;) {
    const i32 fitting = largest_level(at, end);
    const i32 level = fitting < TileShape<Logits>::block_level ? fitting : TileShape<Logits>::block_level;
    space.pieces[space.all_pieces].begin = (u32)at;
    space.pieces[space.all_pieces].level = level;
    ++space.all_pieces;
    at += (i64)1 << level;
  }
}

// By one thread.
CANON_COLD void push_pieces(PartialSpace& space, int first, int last) {
  CANON_ROLLED
  for (int i = first; i < last; ++i)
    space.sum.stack.push(space.pieces[i].node, space.pieces[i].begin, space.pieces[i].level);
}

// The nodes of the shard's columns go on the stack; only the first warp may look at it.
CANON_FN void sum_shard(TileSums<Logits>& sums, i64 begin, i64 live_end, i64 tree_end, PartialSpace& space) {
  constexpr i64 tile = TileShape<Logits>::columns;
  const i64 front = (begin + tile - 1) / tile, front_end = front * tile < tree_end ? front * tile : tree_end;
  const i64 tree_tiles = tree_end / tile; // whole ones end here
  i64 live_tiles = (live_end + tile - 1) / tile;
  if (live_tiles > tree_tiles) live_tiles = tree_tiles;
  i64 back = tree_tiles * tile;
  if (back < front_end) back = front_end;
  begin_row(space.sum);
  if (thread_of_block() == 0) {
    space.all_pieces = 0;
    if (begin < live_end) list_pieces(space, begin, front_end);
    space.front_pieces = space.all_pieces;
    if (back < live_end) list_pieces(space, back, tree_end);
  }
  block_barrier();
  CANON_ROLLED
  for (int i = warp_of_block(); i < space.all_pieces; i += block_warps) {
    const u32 at = space.pieces[i].begin;
    Node node = zero_node();
    if (at < (u32)live_end)
      node = general_node<Logits>(sums.reader, sums.c, sums.bound, at, 1u << space.pieces[i].level);
    if (lane_of_warp() == 0) space.pieces[i].node = node;
  }
  block_barrier();
  if (thread_of_block() == 0) push_pieces(space, 0, space.front_pieces);
  i64 behind = begin < live_end ? front_end : begin;
  if (front < live_tiles)
    behind = (i64)sum_tiles(sums, TileRange{(u32)front, (u32)live_tiles, (u32)tree_tiles}, space.sum) * tile;
  if (thread_of_block() != 0) return;
  push_pieces(space, space.front_pieces, space.all_pieces);
  if (back < live_end) return; // they went to the end
  CANON_ROLLED
  for (i64 at = behind; at < tree_end;) {
    const i32 level = largest_level(at, tree_end);
    push_node(space.sum.stack, zero_node(), at, level);
    at += (i64)1 << level;
  }
}

CANON_FN void partial_row(const LogpPartialArguments& a, i64 number, PartialSpace& space) {
  const RowPlace row = row_place(number, a.options);
  const i64 vocab = a.options.vocab_size, begin = a.shard_begin, end = a.shard_end;
  const i64 live_end = vocab < end ? vocab : end, tree_end = padded_end(end, a.full_vocab);
  const bool is_first_warp = warp_of_block() == 0;
  const Stored* shard = (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides);
  float target_logit = negative_infinity;
  bool ignored = false;
  if (a.target_ids != nullptr) {
    const i64 id = (i64)load((const TargetId*)a.target_ids + row_offset(row, a.options, a.id_strides));
    ignored = id == a.options.ignore_index;
    if (!ignored && id >= begin && id < live_end) target_logit = Logits::widen(load(shard + (id - begin)));
  }
  if (a.target_logit != nullptr && thread_of_block() == 0)
    store(a.target_logit + row_offset(row, a.options, a.target_logit_strides), target_logit);
  const Scale scale = row_scale(row, a.options);
  if (ignored || !scale.valid) {
    if (is_first_warp) write_constant_nodes(a, row, begin, tree_end, ignored ? zero_node() : poison_node());
    return;
  }
  // In the reader's numbering, column `begin` of the vocabulary is where the shard's memory begins.
  TileSums<Logits> sums(RowReader<Logits>(shard - begin, (u32)begin, (u32)live_end), scale);
  sum_shard(sums, begin, live_end, tree_end, space);
  if (!is_first_warp) return;
  warp_barrier();
  write_nodes(a, row, space.sum.stack);
}

} // namespace canon

BILOGP_KERNEL(canon::block_threads, 3)
bilogp_logp_partial(BILOGP_BY_VALUE(LogpPartialArguments) a, BILOGP_BY_VALUE(GpuPlan) plan) {
  BILOGP_BLOCK_OBJECT(canon::PartialSpace, space);
  CANON_ROLLED
  for (i64 row = canon::block_of_grid(); row < plan.rows; row += canon::grid_blocks())
    canon::partial_row(a, row, space);
}

#endif
