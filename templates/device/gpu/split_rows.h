// Rows that several blocks share: each block sums its part of the columns, and the one that comes last joins the nodes.
#ifndef BILOGP_DEVICE_GPU_SPLIT_ROWS_H
#define BILOGP_DEVICE_GPU_SPLIT_ROWS_H

#include "device/gpu/row_sum.h"

#include "device/gpu/plan.h"

namespace canon {

// The node of `parts` neighbouring nodes in scratch memory, each of 2^level columns, by one warp.
CANON_FN Node join_parts(const i32* words, int parts, i32 level, SumSpace& space) {
  if (lane_of_warp() == 0) space.stack.size = 0;
  warp_barrier();
  CANON_ROLLED
  for (int begin = 0; begin < parts; begin += warp_lanes) {
    const int part = begin + lane_of_warp();
    Node node = zero_node();
    if (part < parts) {
      const i32 copy[2] = {load_from_blocks(words + 2 * part), load_from_blocks(words + 2 * part + 1)};
      node = load_node(copy);
    }
    node = warp_joined(node, warp_lanes);
    if (lane_of_warp() == 0) push_node(space.stack, node, (i64)begin << level, level + 5);
  }
  warp_barrier();
  return space.stack.root();
}

// Called by the first warp of every block of a row with the node of its part. True for the block that came last, whose
// `node` becomes that of the whole row.
CANON_FN bool last_of_row(const GpuPlan& plan, i64 row, int part, Node& node, SumSpace& space) {
  i32* words = plan.nodes + row * plan.blocks_per_row * 2;
  u32 ticket = 0;
  if (lane_of_warp() == 0) {
    i32 own[2];
    store_node(own, node);
    store_for_blocks(words + 2 * part, own[0]);
    store_for_blocks(words + 2 * part + 1, own[1]);
    memory_fence();
    ticket = take_ticket(plan.tickets + row);
  }
  ticket = shuffle_from(ticket, 0);
  if (ticket + 1 != (u32)plan.blocks_per_row) return false;
  memory_fence();
  if (lane_of_warp() == 0) store(plan.tickets + row, 0u); // for the next launch
  node = join_parts(words, plan.blocks_per_row, tree_height(plan.columns_per_block), space);
  return true;
}

} // namespace canon

#endif
