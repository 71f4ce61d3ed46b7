// logp_forward: logp of each row's target ids, and, where asked for, lse and the row state.
#ifndef BILOGP_DEVICE_CPU_LOGP_FORWARD_H
#define BILOGP_DEVICE_CPU_LOGP_FORWARD_H

#include "device/cpu/tile.h"
#include "rows/row_results.h"

namespace canon {

CANON_COLD void logp_forward_rows(const LogpForwardArguments& a, i64 row_begin, i64 row_end) {
  const i64 vocab = vocab_size_of(a.options);
  TileWay way = TileWay::plain;
  for (i64 row = row_begin; row < row_end; ++row) {
    const TargetId* ids = row_ids(a, row);
    if (all_ignored(a, ids)) {
      write_ignored_row(a, row);
      continue;
    }
    const Stored* logits = logits_of(a, row);
    const Scale scale = row_scale(row, a.options);
    Node sum = poison_node();
    if (scale.valid) {
      const float* table = leaf_table_for<Logits>(a.options, scale.c);
      TileSums<Logits> tiles(scale, table, way);
      NodeStack stack;
      RowTiles<Logits>(0, vocab, vocab, vocab, tiles)
          .push(stack, logits, logits_of(a, row + 1 < row_end ? row + 1 : row));
      sum = stack.root();
    }
    write_answers(a, row, row, ids, vocab, sum, scale, [&](i64, i64 id) { return Logits::widen(load(logits + id)); });
  }
}

} // namespace canon

// Rows [row_begin, row_end).
BILOGP_KERNEL void bilogp_logp_forward(const LogpForwardArguments* arguments, i64 row_begin, i64 row_end) {
  canon::FloatingPointMode mode;
  canon::logp_forward_rows(*arguments, row_begin, row_end);
}

#endif
