// logp_backward on a GPU, the plain plan: each block writes columns_per_block columns of a row.
#ifndef BILOGP_DEVICE_GPU_LOGP_BACKWARD_H
#define BILOGP_DEVICE_GPU_LOGP_BACKWARD_H

#include "device/gpu/gradient_row.h"
#include "rows/specialization.h"

#include "device/gpu/plan.h"

namespace canon {

// By one warp: what the row's gradient is made of. `reports` names the one block that counts a bad id.
CANON_FN void prepare_row(const LogpBackwardArguments& a, const GpuPlan& plan, i64 number, bool reports,
                          GradientRow<Logits>& r) {
  const RowPlace row = row_place(number, a.options);
  const i64 vocab = a.options.vocab_size, begin = a.column_begin, origin = begin - a.column_origin;
  const i64 live_end = vocab < a.column_end ? vocab : a.column_end;
  const i64 id = (i64)load((const TargetId*)a.target_ids + row_offset(row, a.options, a.id_strides));
  const bool is_ignored = id == a.options.ignore_index, is_bad = !is_ignored && (id < 0 || id >= vocab);
  if (lane_of_warp() != 0) return;
  if (is_bad && reports) report_bad_target(a.options.errors, plan.first_row + number, id);
  r.logits = (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides) + origin;
  r.out = (Stored*)a.grad_logits + row_offset(row, a.options, a.grad_strides) + origin;
  r.columns = a.column_end - begin;
  r.live = live_end > begin ? live_end - begin : 0;
  r.target = id >= begin && id < live_end ? id - begin : -1;
  r.kind = GradientKind::zeros;
  if (is_ignored || is_bad) return;
  const i32* state = a.row_state + row_offset(row, a.options, a.row_state_strides);
  const i32 words[2] = {load(state), load(state + 1)};
  r.prepare(load_node(words), row_scale(row, a.options),
            load(a.grad_logp + row_offset(row, a.options, a.grad_logp_strides)));
}

CANON_FN void backward_part(const LogpBackwardArguments& a, const GpuPlan& plan, i64 row, i64 part,
                            GradientRow<Logits>& shared) {
  block_barrier(); // others may still be at the row before this one
  if (warp_of_block() == 0) prepare_row(a, plan, row, part == 0 && a.column_begin == 0, shared);
  block_barrier();
  const GradientVectors<Logits> vectors(shared);
  const u32 per_block = (u32)plan.columns_per_block / Logits::vector_columns, begin = (u32)part * per_block;
  // The last block also takes what the output's alignment has moved behind its columns.
  u32 end = part + 1 == plan.blocks_per_row ? vectors.count : begin + per_block;
  if (end > vectors.count) end = vectors.count;
  write_gradient(vectors, begin, end);
}

} // namespace canon

BILOGP_KERNEL(canon::block_threads, 4)
bilogp_logp_backward(BILOGP_BY_VALUE(LogpBackwardArguments) a, BILOGP_BY_VALUE(GpuPlan) plan) {
  BILOGP_BLOCK_OBJECT(canon::GradientRow<canon::Logits>, row_of_block);
  const i64 parts = plan.rows * plan.blocks_per_row;
  CANON_ROLLED
  for (i64 item = canon::block_of_grid(); item < parts; item += canon::grid_blocks()) {
    const i64 row = item / plan.blocks_per_row;
    canon::backward_part(a, plan, row, item - row * plan.blocks_per_row, row_of_block);
  }
}

#endif
