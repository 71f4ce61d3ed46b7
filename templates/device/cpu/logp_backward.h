// logp_backward: the gradient row from the row state and the upstream gradient, in the dtype of the logits.
//
// Each group of columns is read whole before it is written, and the target's logit before anything, so that the
// gradient may overwrite the logits.
#ifndef BILOGP_DEVICE_CPU_LOGP_BACKWARD_H
#define BILOGP_DEVICE_CPU_LOGP_BACKWARD_H

#include "device/cpu/gradient_lanes.h"
#include "rows/specialization.h"

namespace canon {

struct GradientRow {
  const Stored* logits; // of the first column to write
  Stored* out;          // likewise
  i64 columns;          // that count, from there
  bool past_cache;      // whether to write around the caches
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

// Fewer columns than a group has, or as many, through a copy.
template<class Gradient>
CANON_COLD void part_of_group(const GradientRow& row, i64 begin, i64 columns, const Gradient& gradient) {
  Stored copy[Logits::group_columns];
  for (i64 i = 0; i < Logits::group_columns; ++i) copy[i] = load(row.logits + begin + (i < columns ? i : 0));
  FloatLanes x[Logits::group_vectors];
  Logits::read(copy, x);
  gradient.template of<Logits::group_vectors>(x);
  Logits::template write<Values::any>(copy, x, false);
  for (i64 i = 0; i < columns; ++i) store(row.out + begin + i, copy[i]);
}

// Groups from `begin` on, Count at a time, and where they end. All Count are read before one is written.
template<int Count, class Gradient>
CANON_FN i64 whole_groups(const GradientRow& row, i64 begin, bool past_cache, const Gradient& gradient) {
  constexpr i64 width = Logits::group_columns;
  constexpr int vectors = Logits::group_vectors, bytes = Count * (int)(width * sizeof(Stored));
  i64 j = begin;
  for (; j + Count * width <= row.columns; j += Count * width) {
    CANON_UNROLLED
    for (int i = 0; i < bytes; i += 64) {
      prefetch_near((const char*)(row.logits + j) + near_prefetch + i);
      prefetch_far((const char*)(row.logits + j) + far_prefetch + i);
    }
    FloatLanes x[Count * vectors];
    CANON_UNROLLED
    for (int i = 0; i < Count; ++i) Logits::read(row.logits + j + i * width, x + i * vectors);
    gradient.template of<Count * vectors>(x);
    CANON_UNROLLED
    for (int i = 0; i < Count; ++i)
      Logits::template write<Gradient::gives>(row.out + j + i * width, x + i * vectors, past_cache);
  }
  return j;
}

// Applies `gradient` to every column. What is written past the caches begins at a multiple of a group's bytes.
template<class Gradient> CANON_FN void each_group(const GradientRow& row, const Gradient& gradient) {
  constexpr int count = Gradient::vectors < Logits::group_vectors ? 1 : Gradient::vectors / Logits::group_vectors;
  constexpr u64 group_bytes = Logits::group_columns * sizeof(Stored);
  const u64 missing = (0 - (u64)row.out) & (group_bytes - 1);
  const i64 head = (i64)(missing / sizeof(Stored));
  const bool past_cache = row.past_cache && missing % sizeof(Stored) == 0 && head < row.columns;
  i64 j = past_cache ? head : 0;
  if (j > 0) part_of_group(row, 0, j, gradient);
  if constexpr (count > 1) j = whole_groups<count>(row, j, past_cache, gradient);
  j = whole_groups<1>(row, j, past_cache, gradient);
  if (j < row.columns) part_of_group(row, j, row.columns - j, gradient);
}

struct FarGradient {
  static constexpr int vectors = 1;
  static constexpr Values gives = Values::any;
  const GradientRow& row;
  template<int Count> CANON_MEMBER void of(FloatLanes* x) const {
#pragma clang loop unroll(disable)
    for (int i = 0; i < Count; ++i) {
      FloatLanes p;
      IntLanes n;
      leaf_pair<FloatLanes>(x[i], row.scale, p, n);
      x[i] = gradient_from_pair<FloatLanes>(p, n, row.sum.E, splat<FloatLanes>(row.factor));
    }
  }
};

CANON_COLD void gradient_far_row(const GradientRow& row) {
  each_group(row, FarGradient{row});
}

CANON_FN void gradient_row(const GradientRow& row) {
  NearGradient near;
  if (!near.prepare(row.sum, row.scale, row.factor)) return gradient_far_row(row);
  each_group(row, near);
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
    r.past_cache = a.past_cache != 0;
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
  canon::finish_stores();
}

#endif
