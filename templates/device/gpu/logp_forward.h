// logp_forward on a GPU, the plain plan: whole rows per block, or several blocks per row.
#ifndef BILOGP_DEVICE_GPU_LOGP_FORWARD_H
#define BILOGP_DEVICE_GPU_LOGP_FORWARD_H

#include "device/gpu/split_rows.h"
#include "rows/row_results.h"

namespace canon {

// One block's part of a row: all of it, or columns_per_block columns.
CANON_FN void forward_part(const LogpForwardArguments& a, const GpuPlan& plan, i64 number, int part, SumSpace& space) {
  const RowPlace row = row_place(number, a.options);
  const i64 vocab = vocab_size_of(a.options);
  const bool is_first_warp = warp_of_block() == 0;
  const TargetId* ids = row_ids(a, row);
  if (all_ignored(a, ids)) {
    if (part == 0 && is_first_warp) write_ignored_row(a, row);
    return;
  }
  const Stored* logits = (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides);
  const Scale scale = row_scale(row, a.options);
  Node sum = poison_node();
  if (scale.valid) {
    u32 begin = 0, end = (u32)vocab;
    if (plan.blocks_per_row > 1) {
      begin = (u32)part * (u32)plan.columns_per_block;
      if (end - begin > (u32)plan.columns_per_block && end > begin) end = begin + (u32)plan.columns_per_block;
    }
    TileSums<Logits> sums(RowReader<Logits>(logits, 0, (u32)vocab), scale);
    begin_row(space);
    sum_tiles(sums, tiles_of<Logits>(begin, end), space);
    if (is_first_warp) sum = space.stack.root();
  }
  if (!is_first_warp) return;
  if (plan.blocks_per_row > 1 && !last_of_row(plan, number, part, sum, space)) return;
  write_answers(a, row, plan.first_row + number, ids, vocab, sum, scale,
                [&](i64, i64 id) { return Logits::widen(load(logits + id)); });
}

} // namespace canon

BILOGP_KERNEL(canon::block_threads, 3)
bilogp_logp_forward(BILOGP_BY_VALUE(LogpForwardArguments) a, BILOGP_BY_VALUE(GpuPlan) plan) {
  BILOGP_BLOCK_OBJECT(canon::SumSpace, space);
  const i64 parts = plan.rows * plan.blocks_per_row;
  CANON_ROLLED
  for (i64 item = canon::block_of_grid(); item < parts; item += canon::grid_blocks()) {
    const i64 row = item / plan.blocks_per_row;
    canon::forward_part(a, plan, row, (int)(item - row * plan.blocks_per_row), space);
  }
}

#endif
