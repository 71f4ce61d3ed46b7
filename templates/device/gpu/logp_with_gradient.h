// logp_with_gradient on a GPU, the plain plan: a block reads its row once for the sum and again for the gradient.
#ifndef BILOGP_DEVICE_GPU_LOGP_WITH_GRADIENT_H
#define BILOGP_DEVICE_GPU_LOGP_WITH_GRADIENT_H

#include "device/gpu/gradient_row.h"
#include "device/gpu/row_sum.h"
#include "rows/row_results.h"

#include "device/gpu/plan.h"

namespace canon {

struct GradientSpace {
  SumSpace sum;
  GradientRow<Logits> row;
};

// By the first warp, once the row's sum is known (or the row is ignored): answers, and what the gradient is made of.
CANON_FN void finish_row(const LogpGradientArguments& a, const GpuPlan& plan, i64 number, const RowPlace& row,
                         const TargetId* ids, bool is_ignored, Node sum, const Scale& scale, GradientRow<Logits>& r) {
  const i64 vocab = vocab_size_of(a.options), id = (i64)load(ids);
  const Stored* logits = (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides);
  if (is_ignored)
    write_ignored_row(a, row);
  else
    write_answers(a, row, plan.first_row + number, ids, vocab, sum, scale,
                  [&](i64, i64 target) { return Logits::widen(load(logits + target)); });
  if (lane_of_warp() != 0) return;
  r.logits = logits;
  r.out = (Stored*)a.grad_logits + row_offset(row, a.options, a.grad_strides);
  r.columns = a.columns;
  r.live = vocab;
  r.target = id;
  r.kind = GradientKind::zeros;
  if (is_ignored || id < 0 || id >= vocab) return;
  r.prepare(sum, scale, load(a.grad_logp + row_offset(row, a.options, a.grad_logp_strides)));
}

CANON_FN void row_with_gradient(const LogpGradientArguments& a, const GpuPlan& plan, i64 number, GradientSpace& space) {
  const RowPlace row = row_place(number, a.options);
  const i64 vocab = vocab_size_of(a.options);
  const TargetId* ids = row_ids(a, row);
  const bool is_ignored = all_ignored(a, ids);
  Scale scale = {};
  Node sum = poison_node();
  if (!is_ignored) {
    scale = row_scale(row, a.options);
    if (scale.valid) {
      const Stored* logits = (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides);
      TileSums<Logits> sums(RowReader<Logits>(logits, 0, (u32)vocab), scale);
      begin_row(space.sum);
      sum_tiles(sums, tiles_of<Logits>(0, (u32)vocab), space.sum);
      if (warp_of_block() == 0) sum = space.sum.stack.root();
    }
  }
  block_barrier(); // others may still write the gradient of the row before this one
  if (warp_of_block() == 0) finish_row(a, plan, number, row, ids, is_ignored, sum, scale, space.row);
  block_barrier(); // from here on the logits may be overwritten
  const GradientVectors<Logits> vectors(space.row);
  write_gradient(vectors, 0, vectors.count);
}

} // namespace canon

BILOGP_KERNEL(canon::block_threads, 2)
bilogp_logp_with_gradient(BILOGP_BY_VALUE(LogpGradientArguments) a, BILOGP_BY_VALUE(GpuPlan) plan) {
  BILOGP_BLOCK_OBJECT(canon::GradientSpace, space);
  CANON_ROLLED
  for (i64 row = canon::block_of_grid(); row < plan.rows; row += canon::grid_blocks())
    canon::row_with_gradient(a, plan, row, space);
}

#endif
