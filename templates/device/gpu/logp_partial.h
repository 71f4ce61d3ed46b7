// logp_partial on a GPU, the plain plan: a block per row of the shard.
#ifndef BILOGP_DEVICE_GPU_LOGP_PARTIAL_H
#define BILOGP_DEVICE_GPU_LOGP_PARTIAL_H

#include "device/gpu/row_sum.h"
#include "rows/specialization.h"

#include "device/gpu/plan.h"

namespace canon {

CANON_FN void write_node(const LogpPartialArguments& a, i64 row, i64 k, Node node) {
  i32 words[2];
  store_node(words, node);
  i32* out = a.nodes + row_offset(row, a.options, a.node_strides) + k * a.node_stride_k;
  store(out, words[0]);
  store(out + 1, words[1]);
}

// By one warp: the nodes of the stack, or `constant` in the place of each.
CANON_FN void write_nodes(const LogpPartialArguments& a, i64 row, const NodeStack& stack) {
  CANON_ROLLED
  for (int k = lane_of_warp(); k < stack.size; k += warp_lanes) write_node(a, row, k, stack.nodes[k]);
}
CANON_COLD void write_constant_nodes(const LogpPartialArguments& a, i64 row, i64 begin, i64 end, Node constant) {
  i64 k = 0;
  CANON_ROLLED
  for (i64 at = begin; at < end; at += (i64)1 << largest_level(at, end), ++k)
    if (lane_of_warp() == k % warp_lanes) write_node(a, row, k, constant);
}

CANON_FN void partial_row(const LogpPartialArguments& a, i64 row, SumSpace& space) {
  const i64 vocab = a.options.vocab_size, begin = a.shard_begin, end = a.shard_end;
  const i64 live_end = vocab < end ? vocab : end, tree_end = padded_end(end, a.full_vocab);
  const bool is_first_warp = warp_of_block() == 0;
  // In the reader's numbering, column `begin` of the vocabulary is where the shard's memory begins.
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
  TileSums<Logits> sums(RowReader<Logits>(shard - begin, begin, live_end), scale);
  const i64 summed_end = sum_range(sums, ColumnRange<Logits>{begin, live_end, tree_end}, space);
  if (!is_first_warp) return;
  if (lane_of_warp() == 0) {
    CANON_ROLLED
    for (i64 at = summed_end; at < tree_end;) {
      const i32 level = largest_level(at, tree_end);
      push_node(space.stack, zero_node(), at, level);
      at += (i64)1 << level;
    }
  }
  warp_barrier();
  write_nodes(a, row, space.stack);
}

} // namespace canon

BILOGP_KERNEL(canon::block_threads, 3)
bilogp_logp_partial(BILOGP_BY_VALUE(LogpPartialArguments) a, BILOGP_BY_VALUE(GpuPlan) plan) {
  BILOGP_BLOCK_OBJECT(canon::SumSpace, space);
  CANON_ROLLED
  for (i64 row = canon::block_of_grid(); row < plan.rows; row += canon::grid_blocks())
    canon::partial_row(a, row, space);
}

#endif
