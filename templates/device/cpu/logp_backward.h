// logp_backward: the gradient row from the row state and the upstream gradient, in the dtype of the logits.
//
// Each group of columns is read whole before it is written, and the target's logit before anything, so that the
// gradient may overwrite the logits.
#ifndef BILOGP_DEVICE_CPU_LOGP_BACKWARD_H
#define BILOGP_DEVICE_CPU_LOGP_BACKWARD_H

#include "canon/gradient.h"
#include "rows/specialization.h"

namespace canon {

struct GradientRow {
  const Stored* logits; // of the first column to write
  Stored* out;          // likewise
  i64 columns;          // that count, from there
  Node sum;
  Scale scale;
  float factor;
};

CANON_FN void fill(Stored* out, i64 begin, i64 end, float value) {
  const Stored stored = Logits::narrow(value);
  for (i64 j = begin; j < end; ++j) {
    store(out + j, stored);
    asm volatile(""); // else this becomes a call of memset
  }
}

// Applies `gradient` to every group of columns, the last one through a copy.
template<class Gradient> CANON_FN void each_group(const GradientRow& row, Gradient gradient) {
  constexpr i64 width = Logits::group_columns;
  i64 j = 0;
  for (; j + width <= row.columns; j += width) {
    prefetch_near((const char*)(row.logits + j) + 4096);
    FloatLanes x[Logits::group_vectors];
    Logits::read(row.logits + j, x);
    for (int v = 0; v < Logits::group_vectors; ++v) x[v] = gradient(x[v]);
    Logits::write(row.out + j, x);
  }
  if (j == row.columns) return;
  Stored copy[width];
  for (i64 i = 0; i < width; ++i) copy[i] = load(row.logits + (j + i < row.columns ? j + i : j));
  FloatLanes x[Logits::group_vectors];
  Logits::read(copy, x);
  for (int v = 0; v < Logits::group_vectors; ++v) x[v] = gradient(x[v]);
  Logits::write(copy, x);
  for (i64 i = 0; j + i < row.columns; ++i) store(row.out + j + i, copy[i]);
}

CANON_COLD void gradient_far_row(const GradientRow& row) {
  each_group(row, [&](FloatLanes x) {
    FloatLanes p;
    IntLanes n;
    leaf_pair<FloatLanes>(x, row.scale, p, n);
    return gradient_from_pair<FloatLanes>(p, n, row.sum.E, splat<FloatLanes>(row.factor));
  });
}

CANON_FN void gradient_row(const GradientRow& row) {
  float low;
  if (!is_near(row.sum, row.scale, low)) return gradient_far_row(row);
  const FloatLanes c = splat<FloatLanes>(row.scale.c), lowest = splat<FloatLanes>(low),
                   factor = splat<FloatLanes>(row.factor);
  each_group(row, [&](FloatLanes x) { return gradient_near<FloatLanes>(x, c, lowest, row.sum.E, factor); });
}

CANON_COLD void logp_backward_rows(const LogpBackwardArguments& a, i64 row_begin, i64 row_end) {
  const i64 vocab = a.options.vocab_size;
  const i64 begin = a.column_begin, live_end = vocab < a.column_end ? vocab : a.column_end;
  const i64 columns = a.column_end - begin;
  for (i64 row = row_begin; row < row_end; ++row) {
    GradientRow r;
    const i64 origin = begin - a.column_origin;
    const Stored* logits = (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides);
    r.logits = logits + origin;
    r.out = (Stored*)a.grad_logits + row_offset(row, a.options, a.grad_strides) + origin;
    r.columns = live_end > begin ? live_end - begin : 0;
    const i64 id = (i64)load((const TargetId*)a.target_ids + row_offset(row, a.options, a.id_strides));
    const i32* state = a.row_state + row_offset(row, a.options, a.row_state_strides);
    const i32 words[2] = {load(state), load(state + 1)};
    r.sum = load_node(words);
    r.scale = row_scale(row, a.options);
    if (id == a.options.ignore_index) {
      fill(r.out, 0, columns, 0.0f);
      continue;
    }
    if (id < 0 || id >= vocab) {
      count_bad_target(a.options.errors, row, id, begin == 0); // not once per shard
      fill(r.out, 0, columns, 0.0f);
      continue;
    }
    if (!r.scale.valid || is_poison(r.sum) || is_zero(r.sum)) {
      fill(r.out, 0, columns, quiet_nan());
      continue;
    }
    const float g = load(a.grad_logp + row_offset(row, a.options, a.grad_logp_strides));
    const bool has_target = id >= begin && id < live_end;
    const float target_logit = has_target ? Logits::widen(load(logits + (id - a.column_origin))) : 0.0f;
    r.factor = gradient_factor(g, r.sum, r.scale);
    gradient_row(r);
    if (has_target) store(r.out + (id - begin), Logits::narrow(gradient_at_target(g, target_logit, r.sum, r.scale)));
    fill(r.out, r.columns, columns, 0.0f);
  }
}

} // namespace canon

// Rows [row_begin, row_end).
BILOGP_KERNEL void bilogp_logp_backward(const LogpBackwardArguments* arguments, i64 row_begin, i64 row_end) {
  canon::FloatingPointMode mode;
  canon::logp_backward_rows(*arguments, row_begin, row_end);
}

#endif
