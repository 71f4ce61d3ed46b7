// logp_finish: joins the nodes of all shards of each row, then logp, lse and the row state as in logp_forward.
#ifndef BILOGP_DEVICE_CPU_LOGP_FINISH_H
#define BILOGP_DEVICE_CPU_LOGP_FINISH_H

#include "rows/row_results.h"

namespace canon {

CANON_FN Node joined_shards(const LogpFinishArguments& a, i64 row) {
  NodeStack stack;
  for (i64 s = 0; s < a.shard_count; ++s) {
    const ShardNodesArgument& shard = a.shards[s];
    const i32* in = shard.nodes + row_offset(row, a.options, shard.node_strides);
    const i64 end = padded_end(shard.shard_end, a.full_vocab);
    i64 at = shard.shard_begin;
    while (at < end) {
      const i32 level = largest_level(at, end);
      const i32 words[2] = {load(in), load(in + 1)};
      stack.push(load_node(words), at, level);
      at += (i64)1 << level;
      in += shard.node_stride_k;
    }
  }
  return stack.root();
}

CANON_COLD void logp_finish_rows(const LogpFinishArguments& a, i64 row_begin, i64 row_end) {
  for (i64 row = row_begin; row < row_end; ++row) {
    const TargetId* ids = row_ids(a, row);
    if (all_ignored(a, ids)) {
      write_ignored_row(a, row);
      continue;
    }
    const float* target_logit = a.target_logit + row_offset(row, a.options, a.target_logit_strides);
    const Scale scale = row_scale(row, a.options);
    const Node sum = scale.valid ? joined_shards(a, row) : poison_node();
    write_answers(a, row, row, ids, a.options.vocab_size, sum, scale,
                  [&](i64 k, i64) { return load(target_logit + k * a.target_logit_stride_k); });
  }
}

} // namespace canon

// Rows [row_begin, row_end).
BILOGP_KERNEL void bilogp_logp_finish(const LogpFinishArguments* arguments, i64 row_begin, i64 row_end) {
  canon::FloatingPointMode mode;
  canon::logp_finish_rows(*arguments, row_begin, row_end);
}

#endif
