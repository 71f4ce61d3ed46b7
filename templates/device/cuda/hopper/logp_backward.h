// logp_backward where rows are aligned to vectors: every thread asks for its logits first, works out the row meanwhile,
// and writes its vectors. Nothing is shared and nobody waits for anybody.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_LOGP_BACKWARD_H
#define BILOGP_DEVICE_CUDA_HOPPER_LOGP_BACKWARD_H

#include "canon/arguments.h"
#include "device/gpu/plan.h"

#include "device/cuda/hopper/span.h"
#include "device/gpu/gradient_row.h"
#include "rows/specialization.h"

namespace canon {

constexpr int stream_threads = 256, stream_vectors = BILOGP_VECTORS;

// By one thread: fills in the block's row.
CANON_FN void prepare_row(const LogpBackwardArguments& a, const GpuPlan& plan, i64 row, bool reports,
                          GradientRow<Logits>& r) {
  const i64 vocab = a.options.vocab_size, begin = a.column_begin, origin = begin - a.column_origin;
  const i64 live_end = vocab < a.column_end ? vocab : a.column_end;
  const i64 id = (i64)load((const TargetId*)a.target_ids + row_offset(row, a.options, a.id_strides));
  r.logits = (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides) + origin;
  r.out = (Stored*)a.grad_logits + row_offset(row, a.options, a.grad_strides) + origin;
  r.columns = a.column_end - begin;
  r.live = live_end > begin ? live_end - begin : 0;
  r.target = id >= begin && id < live_end ? id - begin : -1;
  r.kind = GradientKind::zeros;
  if (id == a.options.ignore_index) return;
  if (id < 0 || id >= vocab) {
    if (reports) report_bad_target(a.options.errors, plan.first_row + row, id);
    return;
  }
  const i32* state = a.row_state + row_offset(row, a.options, a.row_state_strides);
  const i32 words[2] = {load(state), load(state + 1)};
  r.prepare(load_node(words), row_scale(row, a.options),
            load(a.grad_logp + row_offset(row, a.options, a.grad_logp_strides)));
}

// Vectors of a near row none of whose columns is so far below the sum that its gradient is +0.0: leaves at the sum's
// own exponent, times the factor.
struct LeafGradient {
  float c, magic, factor;
  u32 floor; // in all columns of a word
  bool near;

  CANON_MEMBER explicit LeafGradient(const GradientRow<Logits>& r)
      : c(r.scale.c), magic(round_magic - (float)r.sum.E), factor(r.factor),
        floor(Words<Logits>::in_all_columns(pattern_above<Logits>((float)(r.sum.E - 98) / r.scale.c))),
        near(r.kind == GradientKind::near) {}

  CANON_MEMBER bool serves(const Vector& v) const {
    const u32 lowest = Words<Logits>::smaller(Words<Logits>::smaller(v.word[0], v.word[1]),
                                              Words<Logits>::smaller(v.word[2], v.word[3]));
    return near && Words<Logits>::larger(lowest, floor) == lowest;
  }
  CANON_MEMBER Vector of(const Vector& v) const {
    Vector y;
    CANON_UNROLL
    for (int i = 0; i < vector_words; ++i) {
      const float low = leaf_scaled(Words<Logits>::column(v.word[i], 0), c, magic) * factor;
      const float high =
          Words<Logits>::columns == 2 ? leaf_scaled(Words<Logits>::column(v.word[i], 1), c, magic) * factor : 0.0f;
      y.word[i] = Words<Logits>::packed(low, high);
    }
    return y;
  }
};

CANON_FN void load_vectors(const Stored* logits, int column, int live, Vector* v) {
  constexpr int step = stream_threads * Logits::vector_columns;
  CANON_UNROLL
  for (int j = 0; j < stream_vectors; ++j)
    if (column + j * step + Logits::vector_columns <= live) v[j] = load_vector(logits + column + j * step);
}

CANON_FN float column_of(const Vector& v, int place) {
  float x = 0.0f;
  CANON_UNROLL
  for (int i = 0; i < Logits::vector_columns; ++i) x = i == place ? Logits::column(v, i) : x;
  return x;
}

CANON_FN void backward_stream(const LogpBackwardArguments& a, const GpuPlan& plan, GradientRow<Logits>& r) {
  constexpr int width = Logits::vector_columns, step = stream_threads * width;
  const u32 row = blockIdx.x / (u32)plan.blocks_per_row, part = blockIdx.x - row * (u32)plan.blocks_per_row;
  const i64 live_end = a.options.vocab_size < a.column_end ? a.options.vocab_size : a.column_end;
  const int live = live_end > a.column_begin ? (int)(live_end - a.column_begin) : 0;
  const int part_end = ((int)part + 1) * plan.columns_per_block;
  const int columns = (int)(a.column_end - a.column_begin), end = part_end < columns ? part_end : columns;
  int column = (int)part * plan.columns_per_block + (int)threadIdx.x * width;
  const Stored* logits =
      (const Stored*)a.logits + row_offset((i64)row, a.options, a.logits_strides) + (a.column_begin - a.column_origin);
  Vector v[stream_vectors];
  load_vectors(logits, column, live, v);
  if (threadIdx.x == 0) prepare_row(a, plan, row, a.column_begin == 0 && part == 0, r);
  block_barrier();
  const LeafGradient leaves(r);
  Stored* out = r.out;
  const int target = (int)r.target;
  // What is rare waits until the loop is done: calls in it would cost registers.
  u32 slow = 0, bit = 1;
  const int begin = column;
  bool has_target = false;
  float target_logit = 0.0f;
#pragma unroll 1
  for (; column < end; load_vectors(logits, column, live, v)) {
    CANON_UNROLL
    for (int j = 0; j < stream_vectors; ++j, column += step, bit *= 2) {
      if (column + width <= live && leaves.serves(v[j])) {
        store_vector(out + column, leaves.of(v[j]));
        if (target >= column && target < column + width) {
          has_target = true;
          target_logit = column_of(v[j], target - column);
        }
      } else if (column < columns) {
        slow |= bit;
      }
    }
  }
  if (has_target) store(out + target, Logits::narrow(gradient_at_target(r.g, target_logit, r.sum, r.scale)));
#pragma unroll 1
  for (column = begin; slow != 0; slow /= 2, column += step)
    if (slow & 1) write_gradient_columns(r, (u32)column, (u32)(column + width < columns ? column + width : columns));
}

} // namespace canon

BILOGP_KERNEL(canon::stream_threads, BILOGP_BLOCKS)
bilogp_logp_backward(BILOGP_BY_VALUE(LogpBackwardArguments) a, BILOGP_BY_VALUE(GpuPlan) plan) {
  BILOGP_BLOCK_OBJECT(canon::GradientRow<canon::Logits>, row_of_block);
  canon::backward_stream(a, plan, row_of_block);
}

#endif
