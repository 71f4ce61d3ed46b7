// logp_with_gradient on Hopper: persistent clusters, one read of the logits and one write of the gradient.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_LOGP_WITH_GRADIENT_H
#define BILOGP_DEVICE_CUDA_HOPPER_LOGP_WITH_GRADIENT_H

#include "canon/arguments.h"
#include "device/gpu/plan.h"

#include "device/cuda/hopper/fused_finisher.h"
#include "device/cuda/hopper/fused_gradient.h"
#include "device/cuda/hopper/tile_summer.h"

namespace canon {

typedef TileSummer<LeafTable<Logits>::exists> FusedSummer;

// Phase A: the sum of a tile goes to all blocks of the cluster.
CANON_FN void sum_tile(FusedSummer& summer, const FusedLayout& ring, const FusedPlace& here, const FusedTile& at,
                       int vocab) {
  const u32 lane = summer.lane, buffer = row_buffer(at.k);
  barrier_wait(ring.full + here.place * 8, here.parity);
  float s = 0.0f;
  u32 kind = 0;
  if (load_shared(ring.ignored + here.place * 4) == 0) {
    const int begin = at.tile * TileShape<Logits>::columns + (int)lane * TileShape<Logits>::span_columns;
    const TileSum sum = summer.sum(span_address(ring.tile(here.place), lane), vocab - begin);
    s = sum.s;
    if (sum.way == TileWay::plain)
      kind = __reduce_max_sync(all_lanes, vocab > begin ? Words<Logits>::largest_pattern(summer.magnitude) : 0u);
    else
      kind = not_plain_reference(sum.R);
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) s = s + __shfl_xor_sync(all_lanes, s, distance);
  }
  const u32 record = ring.sum_of(buffer, (u32)at.tile), count = ring.sums_here + buffer * 8;
  if constexpr (fused_blocks == 1) {
    if (lane == 0) store_shared_pair(record, bits_from_float(s), kind);
  } else if (lane < (u32)fused_blocks) {
    send_pair(address_in_block(record, lane), address_in_block(count, lane), bits_from_float(s), kind);
  }
  barrier_arrive(count);
}

CANON_FN void logp_with_gradient(const LogpGradientArguments& a, const GpuPlan& plan) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int vocab = (int)vocab_size_of(a.options);
  const u32 tiles = (u32)((vocab + TileShape<Logits>::columns - 1) / TileShape<Logits>::columns);
  const FusedLayout ring(shared_address(shared_memory), (u32)plan.parameters[0], tiles);
  const FusedShare share(plan, tiles);
  const Scale scale = scale_of(a.options.temperature);
  const GradientPhase gradient = {a, ring, share, lane, vocab, scale};
  const bool makes_gradients = warp >= fused_sum_warps && warp < fused_warps;
  const bool is_lane_ignored = makes_gradients && gradient.is_lane_ignored(); // asked for before the barriers are made
  if (threadIdx.x == 0) init_fused_barriers(ring);
  __syncthreads();
  if (fused_blocks > 1) cluster_arrive();
  // The table is made while the first tiles are on their way.
  if (makes_gradients) gradient.fill_first(warp - fused_sum_warps, is_lane_ignored);
  if constexpr (LeafTable<Logits>::exists)
    build_leaf_table<Logits>(ring.table, scale.c, a.options.temperature, threadIdx.x, fused_threads);
  __syncthreads();
  if (fused_blocks > 1) cluster_wait();
  const PlainWindow window = plain_window<Logits>(scale.c, a.options.temperature);
  if (warp < fused_sum_warps) {
    FusedSummer summer(ring.table, lane, window);
    FusedPlace here(warp);
#pragma unroll 1
    for (FusedTile at(share, warp); at.k < share.rows; at.go(share, here.next_own(warp, fused_sum_warps, ring.places)))
      sum_tile(summer, ring, here, at, vocab);
  } else if (warp < fused_warps) {
    gradient.run(warp - fused_sum_warps, window);
  } else {
    FusedFinisher{a, plan, ring, share, vocab, lane}.run((i32)(warp - fused_warps));
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
