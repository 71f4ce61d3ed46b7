// logp_with_gradient on Hopper: persistent clusters, one read of the logits and one write of the gradient.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_LOGP_WITH_GRADIENT_H
#define BILOGP_DEVICE_CUDA_HOPPER_LOGP_WITH_GRADIENT_H

#include "canon/arguments.h"
#include "device/gpu/plan.h"

#include "device/cuda/hopper/fused_finisher.h"
#include "device/cuda/hopper/fused_gradient.h"
#include "device/cuda/hopper/tile_summer.h"

namespace canon {

// By one lane.
CANON_FN void fused_produce(const LogpGradientArguments& a, const FusedLayout& ring, const FusedShare& share,
                            int vocab) {
  u32 stage = 0, parity = 1;
  i64 id = share.rows > 0 ? (i64)load(row_ids(a, share.row(0))) : 0;
#pragma unroll 1
  for (i64 k = 0; k < share.rows; ++k) {
    const i64 row = share.row(k);
    const bool is_ignored = id == a.options.ignore_index;
    if (k + 1 < share.rows) id = (i64)load(row_ids(a, share.row(k + 1)));
    const i32 first = share.tile_begin * TileShape<Logits>::columns;
    const Stored* from = (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides) + first;
    i32 columns = vocab - first;
#pragma unroll 1
    for (int tiles = share.count(); tiles > 0; tiles -= fused_stage_tiles) {
      const int most = (tiles < fused_stage_tiles ? tiles : fused_stage_tiles) * TileShape<Logits>::columns;
      const u32 bytes = ((u32)(columns < most ? columns : most) * (u32)sizeof(Stored) + 15) & ~15u;
      barrier_wait(ring.empty + stage * 8, parity);
      // All rows that had this buffer are done: they lie further back than the ring is long.
      store_shared(ring.ignored + (u32)k % fused_row_buffers * 4, is_ignored ? 1 : 0);
      if (is_ignored) {
        barrier_arrive(ring.full + stage * 8);
      } else {
        barrier_expect(ring.full + stage * 8, bytes);
        copy_in(ring.stage(stage), from, bytes, ring.full + stage * 8);
      }
      from += fused_stage_tiles * TileShape<Logits>::columns;
      columns -= fused_stage_tiles * TileShape<Logits>::columns;
      if (++stage == ring.stage_count) {
        stage = 0;
        parity ^= 1;
      }
    }
  }
}

// Phase A: the sum of the tile at `at` goes to all blocks of the cluster.
CANON_FN void sum_phase(TileSummer<LeafTable<Logits>::exists>& summer, const FusedLayout& ring, const FusedShare& share,
                        const FusedPosition& at, int vocab) {
  const u32 lane = summer.lane, buffer = at.buffer();
  barrier_wait(ring.full + at.stage * 8, at.parity);
  TileSum sum = {0.0f, plain_reference, TileWay::plain, 0.0f};
  u32 largest = 0;
  const u32 tile = (u32)(share.tile_begin + at.i);
  if (load_shared(ring.ignored + buffer * 4) == 0) {
    const int begin = (int)tile * TileShape<Logits>::columns + (int)lane * TileShape<Logits>::span_columns;
    sum = summer.sum(span_address(ring.stage(at.stage) + (u32)(at.i % fused_stage_tiles) * tile_bytes, lane),
                     vocab - begin);
    if (sum.way == TileWay::plain)
      largest = __reduce_max_sync(all_lanes, vocab > begin ? Words<Logits>::largest_pattern(summer.magnitude) : 0u);
    else
      largest = not_plain;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) sum.s = sum.s + __shfl_xor_sync(all_lanes, sum.s, distance);
  }
  const u32 place = ring.sum_of(buffer, tile), here = ring.sums_here + buffer * 8;
  if constexpr (fused_blocks == 1) {
    if (lane == 0) {
      store_shared_vector(place, bits_from_float(sum.s), (u32)sum.R, largest, 0);
      barrier_arrive(here);
    }
  } else if (lane < (u32)fused_blocks) {
    send_vector(address_in_block(place, lane), address_in_block(here, lane), bits_from_float(sum.s), (u32)sum.R,
                largest, 0);
  }
}

CANON_FN void logp_with_gradient(const LogpGradientArguments& a, const GpuPlan& plan) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const int warp = (int)threadIdx.x / 32;
  const u32 lane = threadIdx.x % 32;
  const int vocab = (int)vocab_size_of(a.options);
  const u32 tiles = (u32)((vocab + TileShape<Logits>::columns - 1) / TileShape<Logits>::columns);
  const FusedLayout ring(shared_address(shared_memory), (u32)plan.parameters[0], tiles);
  const FusedShare share(plan, tiles);
  const Scale scale = scale_of(a.options.temperature);
  if (threadIdx.x == 0) init_fused_barriers(ring);
  if constexpr (LeafTable<Logits>::exists)
    build_leaf_table<Logits>(ring.base, scale.c, a.options.temperature, threadIdx.x, fused_threads);
  __syncthreads();
  if (fused_blocks > 1) {
    cluster_arrive();
    cluster_wait();
  }
  if (warp == fused_warps) {
    if (elected_lane()) fused_produce(a, ring, share, vocab);
  } else if (warp > fused_warps) {
    FusedFinisher{a, plan, ring, share, vocab, lane, fused_blocks > 1 ? cluster_rank() : 0}.run(
        (u32)(warp - fused_warps - 1));
  } else {
    const PlainWindow window = plain_window<Logits>(scale.c, a.options.temperature);
    TileSummer<LeafTable<Logits>::exists> summer(ring.base, lane, window);
    const GradientPhase gradient = {a, ring, share, lane, vocab, window, scale};
    FusedPosition ahead(share, ring.stage_count, warp), behind = ahead;
    const i64 all = share.rows * share.count();
    bool summed = false;
#pragma unroll 1
    for (i64 i = warp; i < all || summed; i += fused_warps) {
      const bool has_next = i < all;
      if (has_next) sum_phase(summer, ring, share, ahead, vocab);
      if (summed) {
        gradient.run(behind);
        behind.move(share, ring.stage_count, fused_warps);
      }
      if (has_next) ahead.move(share, ring.stage_count, fused_warps);
      summed = has_next;
    }
  }
  // No block may leave while others can still send to it.
  __syncwarp();
  __syncthreads();
  if (fused_blocks > 1) {
    cluster_arrive();
    cluster_wait();
  }
}

} // namespace canon

#if BILOGP_CLUSTER > 1
BILOGP_CLUSTER_KERNEL(canon::fused_threads, 1, BILOGP_CLUSTER)
#else
BILOGP_KERNEL(canon::fused_threads, 1)
#endif
bilogp_logp_with_gradient(BILOGP_BY_VALUE(LogpGradientArguments) a, BILOGP_BY_VALUE(GpuPlan) plan) {
  canon::logp_with_gradient(a, plan);
}

#endif
