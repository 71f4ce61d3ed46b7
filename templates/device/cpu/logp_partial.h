// logp_partial: the nodes that one shard of the vocabulary contributes to each row, and the target's logit.
#ifndef BILOGP_DEVICE_CPU_LOGP_PARTIAL_H
#define BILOGP_DEVICE_CPU_LOGP_PARTIAL_H

#include "device/cpu/tile.h"
#include "rows/specialization.h"

namespace canon {

CANON_FN void write_node(const LogpPartialArguments& a, i64 row, i64 k, Node node) {
  i32 words[2];
  store_node(words, node);
  i32* out = a.nodes + row_offset(row, a.options, a.node_strides) + k * a.node_stride_k;
  store(out, words[0]);
  store(out + 1, words[1]);
}

CANON_FN i64 shard_node_count(const LogpPartialArguments& a) {
  i64 count = 0;
  const i64 end = padded_end(a.shard_end, a.full_vocab);
  for (i64 at = a.shard_begin; at < end; at += (i64)1 << largest_level(at, end)) ++count;
  return count;
}

CANON_COLD void logp_partial_rows(const LogpPartialArguments& a, i64 row_begin, i64 row_end) {
  const i64 vocab = a.options.vocab_size;
  const i64 count = shard_node_count(a);
  TileWay way = TileWay::plain;
  for (i64 row = row_begin; row < row_end; ++row) {
    const Stored* logits = logits_of(a, row);
    float target_logit = negative_infinity;
    bool ignored = false;
    if (a.target_ids != nullptr) {
      const i64 id = (i64)load((const TargetId*)a.target_ids + row_offset(row, a.options, a.id_strides));
      ignored = id == a.options.ignore_index;
      if (!ignored && id >= a.shard_begin && id < a.shard_end && id < vocab)
        target_logit = Logits::widen(load(logits + (id - a.shard_begin)));
    }
    if (a.target_logit != nullptr)
      store(a.target_logit + row_offset(row, a.options, a.target_logit_strides), target_logit);
    const Scale scale = row_scale(row, a.options);
    if (ignored || !scale.valid) {
      for (i64 k = 0; k < count; ++k) write_node(a, row, k, ignored ? zero_node() : poison_node());
      continue;
    }
    const float* table = leaf_table_for<Logits>(a.options, scale.c);
    TileSums<Logits> tiles(scale, table, way);
    NodeStack stack;
    RowTiles<Logits>(a.shard_begin, a.shard_end, a.full_vocab, vocab, tiles)
        .push(stack, logits, logits_of(a, row + 1 < row_end ? row + 1 : row));
    for (i64 k = 0; k < count; ++k) write_node(a, row, k, stack.nodes[k]);
  }
}

} // namespace canon

// Rows [row_begin, row_end).
BILOGP_KERNEL void bilogp_logp_partial(const LogpPartialArguments* arguments, i64 row_begin, i64 row_end) {
  canon::FloatingPointMode mode;
  canon::logp_partial_rows(*arguments, row_begin, row_end);
}

#endif
