// logp_with_gradient by clusters: the finishing warps. In each block they join the sums of all tiles of a row and tell
// the block's warps what the gradient is made of; the block that holds the row's target also writes its results.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_FUSED_FINISHER_H
#define BILOGP_DEVICE_CUDA_HOPPER_FUSED_FINISHER_H

#include "canon/gradient.h"
#include "device/cuda/hopper/fused_ring.h"
#include "device/cuda/hopper/row_answer.h"
#include "device/cuda/hopper/row_nodes.h"

namespace canon {

// Whether leaf * scaled is the gradient of every column of a plain row whose largest magnitude is `largest`: the
// scaling must be exact, and no leaf so far below the sum that its gradient is +0.0 by definition.
CANON_FN bool gradient_is_plain(Node sum, float largest, float factor, const Scale& scale, float& scaled) {
  if (sum.E > 100 || sum.E < -100) return false;
  scaled = factor * power_of_two(plain_reference - sum.E);
  const float size = scaled < 0.0f ? -scaled : scaled;
  const bool exact = factor == 0.0f || (size >= 0x1p-126f && size < 0x1p127f);
  return exact && (float)sum.E + largest * scale.c + 1.5f < -(float)gradient_floor;
}

struct FusedFinisher {
  const LogpGradientArguments& a;
  const GpuPlan& plan;
  const FusedLayout& ring;
  const FusedShare& share;
  const i64 vocab;
  const u32 lane;

  CANON_MEMBER void publish(u32 buffer, const RowInfo& info) const {
    if (lane == 0) {
      const u32 at = ring.info_of(buffer);
      store_shared_vector(at, bits_from_float(info.scaled), bits_from_float(info.factor), bits_from_float(info.low),
                          bits_from_float(info.g));
      store_shared_vector(at + 16, bits_from_float(info.m), (u32)info.E, (u32)info.way, (u32)info.target);
    }
    barrier_arrive(ring.info_here + buffer * 8);
  }

  // `largest` is the largest magnitude of a row of plain tiles, or has the bit of one that is not.
  CANON_MEMBER RowNodes read_sums(u32 buffer, u32& largest) const {
    RowNodes nodes;
    largest = 0;
#pragma unroll
    for (int i = 0; i < nodes_per_lane; ++i) {
      const u32 tile = (u32)i * 32 + lane;
      nodes.s[i] = 0.0f;
      nodes.R[i] = plain_reference;
      if (tile < ring.tiles) {
        const Vector v = load_shared_pair(ring.sum_of(buffer, tile));
        nodes.s[i] = float_from_bits(v.word[0]);
        nodes.R[i] = reference_of(v.word[1]);
        largest = v.word[1] > largest ? v.word[1] : largest;
      }
    }
    largest = __reduce_max_sync(all_lanes, largest);
    return nodes;
  }

  CANON_MEMBER RowInfo info_of(Node sum, u32 largest, i64 id, float g, const Scale& scale) const {
    RowInfo info = {};
    info.g = g;
    info.m = sum.m;
    info.E = sum.E;
    info.target = -1;
    info.way = (i32)GradientWay::zeros;
    if (id < 0 || id >= vocab || id == a.options.ignore_index) return info;
    info.way = (i32)GradientWay::nans;
    if (!scale.valid || is_poison(sum) || is_zero(sum)) return info;
    info.target = (i32)id;
    info.factor = gradient_factor(g, sum, scale);
    info.way = (i32)GradientWay::plain;
    info.low = -scale.bound; // no column is below: for a last tile behind which more columns are stored
    if (largest < not_plain && gradient_is_plain(sum, Words<Logits>::value(largest), info.factor, scale, info.scaled))
      return info;
    info.way = (i32)(is_near(sum, scale, info.low) ? GradientWay::near : GradientWay::far);
    return info;
  }

  // The own block's part of a row may be a tile less than of another row.
  CANON_MEMBER void expect_sums(u32 sums_here, i32 own_tiles) const {
    const u32 missing = ring.most_own_tiles() - (u32)own_tiles;
    if (missing != 0) barrier_arrive_many(sums_here, missing * warp_lanes);
    barrier_expect(sums_here, ring.tiles * fused_sum_bytes);
  }

  CANON_MEMBER i64 id_of(i32 k) const { return k < share.rows ? (i64)load(row_ids(a, share.row(k))) : 0; }

  CANON_MEMBER void run(i32 first) const {
    const Scale scale = scale_of(a.options.temperature);
    i64 next_id = id_of(first);
#pragma unroll 1
    for (i32 k = first; k < share.rows; k += fused_finishers) {
      const i64 row = share.row(k), id = next_id;
      const RowPlace row_at = row_place(row, a.options);
      const u32 buffer = row_buffer(k);
      if (fused_blocks > 1 && lane == 0) expect_sums(ring.sums_here + buffer * 8, share.end(k) - share.begin(k));
      const float g = load(a.grad_logp + row_offset(row_at, a.options, a.grad_logp_strides));
      const Stored* logits = (const Stored*)a.logits + row_offset(row_at, a.options, a.logits_strides);
      // The target's block answers. Its logit is there before anybody is told about the row, whose gradient may be
      // written over it; only this block does that.
      const bool in_vocab = id >= 0 && id < vocab;
      const i32 tile = in_vocab ? (i32)(id / TileShape<Logits>::columns) : 0;
      const bool answers = tile >= share.begin(k) && tile < share.end(k);
      float logit = 0.0f;
      if (answers) logit = Logits::widen(load(logits + (in_vocab ? id : 0)));
      next_id = id_of(k + fused_finishers);
      barrier_wait(ring.sums_here + buffer * 8, row_parity(k));
      u32 largest;
      RowNodes nodes = read_sums(buffer, largest);
      const Node sum = nodes.root();
      const RowInfo info = info_of(sum, largest, id, g, scale);
      logit = __shfl_sync(all_lanes, logit, (int)lane);
      // In the order of rows: who knows of a row knows that all before are done.
      if (k > 0) barrier_wait(ring.info_here + row_buffer(k - 1) * 8, row_parity(k - 1));
      barrier_wait(ring.info_done + buffer * 8, row_parity(k) ^ 1); // of the row that had the buffer before
      publish(buffer, info);
      if (!answers) continue;
      if (id == a.options.ignore_index)
        write_ignored_row(a, row_at);
      else
        answer_row(a, row_at, plan.first_row + row, row_ids(a, row_at), logits, vocab, sum, scale,
                   target_of(a, id, logit, vocab, scale), answer_place(a, row_at));
    }
  }
};

} // namespace canon

#endif
