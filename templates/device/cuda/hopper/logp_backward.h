// logp_backward where rows are aligned to vectors: every thread asks for its logits first, works out the row meanwhile,
// and writes its vectors. Nothing is shared and nobody waits for anybody, but for what is rare.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_LOGP_BACKWARD_H
#define BILOGP_DEVICE_CUDA_HOPPER_LOGP_BACKWARD_H

#include "canon/arguments.h"
#include "device/gpu/plan.h"

#include "device/cuda/hopper/span.h"
#include "device/gpu/gradient_row.h"
#include "rows/specialization.h"

namespace canon {

constexpr int stream_threads = block_threads, stream_vectors = BILOGP_VECTORS;
constexpr int stream_width = Logits::vector_columns, stream_step = stream_threads * stream_width;

// By one thread: fills in a row that is not ordinary, or has vectors that are not.
CANON_FN void prepare_row(const LogpBackwardArguments& a, const GpuPlan& plan, i64 row, bool reports,
                          GradientRow<Logits>& r) {
  const i64 vocab = a.options.vocab_size, begin = a.column_begin, origin = begin - a.column_origin;
  const i64 live_end = vocab < a.column_end ? vocab : a.column_end;
  const RowPlace at = row_place(row, a.options);
  const i64 id = (i64)load((const TargetId*)a.target_ids + row_offset(at, a.options, a.id_strides));
  r.logits = (const Stored*)a.logits + row_offset(at, a.options, a.logits_strides) + origin;
  r.out = (Stored*)a.grad_logits + row_offset(at, a.options, a.grad_strides) + origin;
  r.columns = a.column_end - begin;
  r.live = live_end > begin ? live_end - begin : 0;
  r.target = id >= begin && id < live_end ? id - begin : -1;
  r.kind = GradientKind::zeros;
  if (id == a.options.ignore_index) return;
  if (id < 0 || id >= vocab) {
    if (reports) report_bad_target(a.options.errors, plan.first_row + row, id);
    return;
  }
  const i32* state = a.row_state + row_offset(at, a.options, a.row_state_strides);
  const i32 words[2] = {load(state), load(state + 1)};
  r.prepare(load_node(words), row_scale(at, a.options),
            load(a.grad_logp + row_offset(at, a.options, a.grad_logp_strides)));
}

// An ordinary row, worked out by every thread for itself: a target inside the vocabulary, and a sum and a temperature
// for which every logit from `floor` on is near (|x * c| stays below 2^17, and |x| below B) and none of its columns so
// far below the sum that its gradient is +0.0.
struct OrdinaryRow {
  static constexpr i32 largest_exponent = 0x10000;
  static constexpr float smallest_scale = 0x1p-12f; // then 2^17 / c is below 2^29

  float c, magic, factor;
  u32 floor; // in all columns of a word
  i64 id;
  bool is_ordinary;

  CANON_MEMBER OrdinaryRow(const LogpBackwardArguments& a, i64 row) {
    id = (i64)load((const TargetId*)a.target_ids + row_offset(row, a.options, a.id_strides));
    const Node sum = row_sum(a, row);
    const float g = upstream(a, row);
    const Scale scale = row_scale(row, a.options);
    is_ordinary = id != a.options.ignore_index && id >= 0 && id < a.options.vocab_size && sum.m >= 1.0f &&
                  sum.E <= largest_exponent && sum.E >= -largest_exponent && scale.valid && scale.c >= smallest_scale;
    c = scale.c;
    magic = round_magic - (float)sum.E;
    factor = gradient_factor(g, sum, scale);
    floor = Words<Logits>::in_all_columns(pattern_above<Logits>((float)(sum.E - 98) / scale.c));
  }
  CANON_MEMBER static Node row_sum(const LogpBackwardArguments& a, i64 row) {
    const i32* state = a.row_state + row_offset(row, a.options, a.row_state_strides);
    return Node{float_from_bits((u32)load(state)), load(state + 1)};
  }
  CANON_MEMBER static float upstream(const LogpBackwardArguments& a, i64 row) {
    return load(a.grad_logp + row_offset(row, a.options, a.grad_logp_strides));
  }

  CANON_MEMBER bool serves(const Vector& v) const {
    const u32 lowest = Words<Logits>::smaller(Words<Logits>::smaller(v.word[0], v.word[1]),
                                              Words<Logits>::smaller(v.word[2], v.word[3]));
    return is_ordinary && Words<Logits>::larger(lowest, floor) == lowest;
  }
  CANON_MEMBER Vector gradient_of(const Vector& v) const {
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

CANON_FN float column_of(const Vector& v, int place) {
  float x = 0.0f;
  CANON_UNROLL
  for (int i = 0; i < Logits::vector_columns; ++i) x = i == place ? Logits::column(v, i) : x;
  return x;
}

// The vectors of a warp that are not ordinary: bit j of `slow` is vector j of this lane, from `column` on.
CANON_FN void write_slow_vectors(const GradientRow<Logits>& r, int column, u32 slow) {
  CANON_ROLLED
  for (; slow != 0; slow /= 2, column += stream_step) {
    if ((slow & 1) == 0) continue;
    const int behind = column + stream_width, columns = (int)r.columns, target = (int)r.target;
    const bool has_target = target >= column && target < behind;
    if (r.kind < GradientKind::near && behind <= columns)
      store_whole_vector(r.out + column, constant_vector<Logits>(r.kind));
    else if (r.kind == GradientKind::near && behind <= (int)r.live && !has_target)
      store_whole_vector(r.out + column, NearGradient<Logits>(r).of(load_vector(r.logits + column)));
    else
      write_gradient_columns(r, (u32)column, (u32)(behind < columns ? behind : columns));
  }
}

struct BackwardSpace {
  GradientRow<Logits> rows[block_warps];
};

CANON_FN void load_vectors(const Stored* logits, int column, int live, Vector* v) {
  CANON_UNROLL
  for (int j = 0; j < stream_vectors; ++j)
    if (column + j * stream_step + stream_width <= live) v[j] = load_vector(logits + column + j * stream_step);
}

CANON_FN void backward_stream(const LogpBackwardArguments& a, const GpuPlan& plan, BackwardSpace& space) {
  const u32 row = blockIdx.x / (u32)plan.blocks_per_row, part = blockIdx.x - row * (u32)plan.blocks_per_row;
  const i64 live_end = a.options.vocab_size < a.column_end ? a.options.vocab_size : a.column_end;
  const int live = live_end > a.column_begin ? (int)(live_end - a.column_begin) : 0;
  const int columns = (int)(a.column_end - a.column_begin), part_end = ((int)part + 1) * plan.columns_per_block;
  const int end = part_end < columns ? part_end : columns;
  const int begin = (int)part * plan.columns_per_block + (int)threadIdx.x * stream_width;
  const i64 origin = a.column_begin - a.column_origin;
  const Stored* logits = (const Stored*)a.logits + row_offset((i64)row, a.options, a.logits_strides) + origin;
  Vector v[stream_vectors], next[stream_vectors];
  load_vectors(logits, begin, live, v);
  const OrdinaryRow r(a, row);
  Stored* out = (Stored*)a.grad_logits + row_offset((i64)row, a.options, a.grad_strides) + origin;
  const i64 from_begin = r.id - a.column_begin;
  const int target = r.is_ordinary && from_begin >= 0 && r.id < live_end ? (int)from_begin : -1;
  // What is rare waits until all else is done: calls in between would cost registers.
  u32 slow = 0, bit = 1;
  bool has_target = false;
  float target_logit = 0.0f;
#pragma unroll 1
  for (int column = begin;;) {
    const int behind = column + stream_vectors * stream_step;
    const bool goes_on = behind < end; // the next vectors are on their way while these are worked on
    if (goes_on) load_vectors(logits, behind, live, next);
    CANON_UNROLL
    for (int j = 0; j < stream_vectors; ++j, bit *= 2) {
      const int at = column + j * stream_step;
      if (at + stream_width <= live && r.serves(v[j])) {
        store_whole_vector(out + at, r.gradient_of(v[j]));
        if (target >= at && target < at + stream_width) {
          has_target = true;
          target_logit = column_of(v[j], target - at);
        }
      } else if (at < columns) {
        slow |= bit;
      }
    }
    if (!goes_on) break;
    column = behind;
    CANON_UNROLL
    for (int j = 0; j < stream_vectors; ++j) v[j] = next[j];
  }
  if (has_target) { // what it takes is read once more: kept, it would cost all threads registers
    const float y = gradient_at_target(OrdinaryRow::upstream(a, row), target_logit, OrdinaryRow::row_sum(a, row),
                                       row_scale((i64)row, a.options));
    store(out + target, Logits::narrow(y));
  }
  if (!warp_any(slow != 0)) return;
  GradientRow<Logits>& shared = space.rows[warp_of_block()];
  if (lane_of_warp() == 0) prepare_row(a, plan, row, a.column_begin == 0 && part == 0 && warp_of_block() == 0, shared);
  warp_barrier();
  write_slow_vectors(shared, begin, slow);
}

} // namespace canon

BILOGP_KERNEL(canon::stream_threads, BILOGP_BLOCKS)
bilogp_logp_backward(BILOGP_BY_VALUE(LogpBackwardArguments) a, BILOGP_BY_VALUE(GpuPlan) plan) {
  BILOGP_BLOCK_OBJECT(canon::BackwardSpace, space);
  canon::backward_stream(a, plan, space);
}

#endif
