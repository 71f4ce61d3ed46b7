// logp_finish on a GPU: a warp per row.
#ifndef BILOGP_DEVICE_GPU_LOGP_FINISH_H
#define BILOGP_DEVICE_GPU_LOGP_FINISH_H

#include "device/gpu/warp.h"
#include "rows/row_results.h"

#include "device/gpu/plan.h"

namespace canon {

struct FinishSpace {
  NodeStack stacks[block_warps];
};

// The lanes load up to 32 nodes of a shard at a time, and the first one joins them in order.
CANON_FN Node joined_shards(const LogpFinishArguments& a, const GpuShards& shards, const RowPlace& row,
                            NodeStack& stack) {
  const int lane = lane_of_warp();
  if (lane == 0) stack.size = 0;
  CANON_ROLLED
  for (int s = 0; s < (int)a.shard_count; ++s) {
    const ShardNodesArgument& shard = shards.shards[s];
    const i32* in = shard.nodes + row_offset(row, a.options, shard.node_strides);
    const i64 end = padded_end(shard.shard_end, a.full_vocab);
    i64 at = shard.shard_begin;
    CANON_ROLLED
    for (i64 first = 0; at < end; first += warp_lanes) {
      // Where this lane's node begins, if there is one left for it.
      i64 batch_end = at, own_begin = -1;
      CANON_ROLLED
      for (int i = 0; i < warp_lanes && batch_end < end; ++i) {
        if (i == lane) own_begin = batch_end;
        batch_end += (i64)1 << largest_level(batch_end, end);
      }
      Node own = zero_node();
      if (own_begin >= 0) {
        const i32* words = in + (first + lane) * shard.node_stride_k;
        const i32 copy[2] = {load(words), load(words + 1)};
        own = load_node(copy);
      }
      CANON_ROLLED
      for (int i = 0; at < batch_end; ++i) {
        const i32 level = largest_level(at, end);
        const Node node = shuffle_from(own, i);
        if (lane == 0) stack.push(node, at, level);
        at += (i64)1 << level;
      }
    }
  }
  warp_barrier();
  return stack.root();
}

CANON_FN void finish_row(const LogpFinishArguments& a, const GpuPlan& plan, const GpuShards& shards, i64 number,
                         NodeStack& stack) {
  const RowPlace row = row_place(number, a.options);
  const TargetId* ids = row_ids(a, row);
  if (all_ignored(a, ids)) {
    write_ignored_row(a, row);
    return;
  }
  const float* target_logit = a.target_logit + row_offset(row, a.options, a.target_logit_strides);
  const Scale scale = row_scale(row, a.options);
  warp_barrier(); // others may still read the stack of the row before this one
  const Node sum = scale.valid ? joined_shards(a, shards, row, stack) : poison_node();
  write_answers(a, row, plan.first_row + number, ids, a.options.vocab_size, sum, scale,
                [&](i64 k, i64) { return load(target_logit + k * a.target_logit_stride_k); });
}

} // namespace canon

BILOGP_KERNEL(canon::block_threads, 2)
bilogp_logp_finish(BILOGP_BY_VALUE(LogpFinishArguments) a, BILOGP_BY_VALUE(GpuPlan) plan,
                   BILOGP_BY_VALUE(GpuShards) shards) {
  BILOGP_BLOCK_OBJECT(canon::FinishSpace, space);
  CANON_ROLLED
  for (i64 row = canon::block_of_grid() * canon::block_warps + canon::warp_of_block(); row < plan.rows;
       row += canon::grid_blocks() * canon::block_warps)
    canon::finish_row(a, plan, shards, row, space.stacks[canon::warp_of_block()]);
}

#endif
