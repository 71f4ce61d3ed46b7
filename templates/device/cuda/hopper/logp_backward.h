// logp_backward where rows are aligned to vectors: every thread asks for its logits first, works out the row meanwhile,
// and writes its vectors. Nothing is shared and nobody waits for anybody.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_LOGP_BACKWARD_H
#define BILOGP_DEVICE_CUDA_HOPPER_LOGP_BACKWARD_H

#include "canon/arguments.h"
#include "device/gpu/plan.h"

#include "device/gpu/gradient_row.h"
#include "rows/specialization.h"

namespace canon {

constexpr int stream_threads = 256, stream_vectors = BILOGP_VECTORS;

CANON_FN GradientRow<Logits> gradient_row(const LogpBackwardArguments& a, const GpuPlan& plan, i64 row, bool reports) {
  const i64 vocab = a.options.vocab_size, begin = a.column_begin, origin = begin - a.column_origin;
  const i64 live_end = vocab < a.column_end ? vocab : a.column_end;
  const i64 id = (i64)load((const TargetId*)a.target_ids + row_offset(row, a.options, a.id_strides));
  const i32* state = a.row_state + row_offset(row, a.options, a.row_state_strides);
  const i32 words[2] = {load(state), load(state + 1)};
  const float g = load(a.grad_logp + row_offset(row, a.options, a.grad_logp_strides));
  GradientRow<Logits> r;
  r.logits = (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides) + origin;
  r.out = (Stored*)a.grad_logits + row_offset(row, a.options, a.grad_strides) + origin;
  r.columns = a.column_end - begin;
  r.live = live_end > begin ? live_end - begin : 0;
  r.target = id >= begin && id < live_end ? id - begin : -1;
  r.kind = GradientKind::zeros;
  if (id == a.options.ignore_index) return r;
  if (id >= 0 && id < vocab)
    r.prepare(load_node(words), row_scale(row, a.options), g);
  else if (reports)
    report_bad_target(a.options.errors, plan.first_row + row, id);
  return r;
}

// The target's column, by the thread that has just written its vector.
CANON_FN void write_target(const GradientRow<Logits>& r, int column, const Vector& v) {
  const int place = (int)r.target - column;
  if (place < 0 || place >= Logits::vector_columns || r.kind < GradientKind::near) return;
  float x = 0.0f;
  CANON_UNROLL
  for (int i = 0; i < Logits::vector_columns; ++i) x = i == place ? Logits::column(v, i) : x;
  store(r.out + column + place, Logits::narrow(gradient_at_target(r.g, x, r.sum, r.scale)));
}

CANON_FN void load_vectors(const Stored* logits, int column, int live, Vector* v) {
  constexpr int step = stream_threads * Logits::vector_columns;
  CANON_UNROLL
  for (int j = 0; j < stream_vectors; ++j)
    if (column + j * step + Logits::vector_columns <= live) v[j] = load_vector(logits + column + j * step);
}

CANON_FN void write_vectors(const GradientRow<Logits>& r, const NearGradient<Logits>& near, int column, int live,
                            const Vector* v) {
  constexpr int step = stream_threads * Logits::vector_columns;
  CANON_UNROLL
  for (int j = 0; j < stream_vectors; ++j, column += step) {
    if (column + Logits::vector_columns <= live && r.kind == GradientKind::near) {
      store_vector(r.out + column, near.of(v[j]));
      write_target(r, column, v[j]);
    } else if (column < (int)r.columns) {
      const int end = column + Logits::vector_columns;
      const GradientRow<Logits> in_memory = r; // so that the others keep theirs in registers
      write_gradient_columns(in_memory, (u32)column, (u32)(end < (int)r.columns ? end : (int)r.columns));
    }
  }
}

CANON_FN void backward_stream(const LogpBackwardArguments& a, const GpuPlan& plan) {
  constexpr int turn = stream_vectors * stream_threads * Logits::vector_columns;
  const u32 row = blockIdx.x / (u32)plan.blocks_per_row, part = blockIdx.x - row * (u32)plan.blocks_per_row;
  const i64 live_end = a.options.vocab_size < a.column_end ? a.options.vocab_size : a.column_end;
  const int live = live_end > a.column_begin ? (int)(live_end - a.column_begin) : 0;
  const int part_end = ((int)part + 1) * plan.columns_per_block;
  const int columns = (int)(a.column_end - a.column_begin), end = part_end < columns ? part_end : columns;
  int column = (int)part * plan.columns_per_block + (int)threadIdx.x * Logits::vector_columns;
  const Stored* logits =
      (const Stored*)a.logits + row_offset((i64)row, a.options, a.logits_strides) + (a.column_begin - a.column_origin);
  Vector v[stream_vectors];
  load_vectors(logits, column, live, v);
  const GradientRow<Logits> r = gradient_row(a, plan, row, a.column_begin == 0 && part == 0 && threadIdx.x == 0);
  const NearGradient<Logits> near(r);
#pragma unroll 1
  for (;;) {
    write_vectors(r, near, column, live, v);
    column += turn;
    if (column >= end) return;
    load_vectors(logits, column, live, v);
  }
}

} // namespace canon

BILOGP_KERNEL(canon::stream_threads, 3)
bilogp_logp_backward(BILOGP_BY_VALUE(LogpBackwardArguments) a, BILOGP_BY_VALUE(GpuPlan) plan) {
  canon::backward_stream(a, plan);
}

#endif
