// logp_forward, plan 1: persistent blocks, one per multiprocessor, around a ring of tiles. One warp copies rows in,
// most warps sum tiles, and a few finish rows.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_LOGP_FORWARD_RING_H
#define BILOGP_DEVICE_CUDA_HOPPER_LOGP_FORWARD_RING_H

#include "device/cuda/hopper/ring_finisher.h"
#include "device/cuda/hopper/ring_producer.h"
#include "device/cuda/hopper/tile_summer.h"

namespace canon {

CANON_FN void ring_compute(const RingLayout& ring, u32 warp, u32 lane, const PlainWindow& window) {
  TileSummer<ring_uses_table, any_address, has_window_tables> summer(ring.base, lane, window);
  if constexpr (has_window_tables) {
    summer.window_table = ring.window_tables + warp * window_table_bytes;
    clear_window_table(summer.window_table, lane);
  }
  const u32 place = warp % stage_tiles;
  const u32 span_offset = span_address(place * tile_pitch, lane);
  const int columns_before = (int)place * TileShape<Logits>::columns + (int)lane * TileShape<Logits>::span_columns;
  RingPosition stage = {warp / stage_tiles, 0};
#pragma unroll 1
  for (;;) {
    barrier_wait(ring.full + stage.index * 8, stage.parity);
    const Vector given = load_shared_vector(ring.stages + stage.index * 16);
    const u32 done = given.word[1];
    if (done == no_more) return;
    if (place < (given.word[2] & 15)) {
      if constexpr (row_temperatures) {
        const u32 buffer = (done - ring.unit_done) / 8;
        barrier_wait(ring.unit_window + buffer * 8, given.word[2] >> 4 & 1);
        const Vector w = load_shared_vector(ring.unit(buffer) + 16);
        if (float_from_bits(w.word[0]) != summer.window.c)
          summer.window = PlainWindow{float_from_bits(w.word[0]), float_from_bits(w.word[1]), w.word[2], w.word[3], 0};
      }
      TileSum sum = summer.sum(ring.stage(stage.index) + span_offset, (int)given.word[3] - columns_before,
                               any_address ? given.word[2] >> 8 : 0);
      const u32 record = given.word[0] + place * record_bytes;
      if constexpr (tile_sums == 32) {
        store_shared(record + lane * 4, bits_from_float(sum.s));
      } else {
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2)
          sum.s = sum.s + __shfl_xor_sync(all_lanes, sum.s, distance);
        store_shared(record, bits_from_float(sum.s));
      }
      store_shared(record + tile_sums * 4, (u32)sum.R);
      barrier_arrive(done);
    }
    barrier_arrive(ring.empty + stage.index * 8);
    stage.advance(stages_per_round, ring.stage_count);
  }
}

CANON_FN void forward_ring(const LogpForwardArguments& a, const GpuPlan& plan) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int vocab = (int)vocab_size_of(a.options);
  const u32 tiles = (u32)((vocab + TileShape<Logits>::columns - 1) / TileShape<Logits>::columns);
  const RingLayout ring(shared_address(shared_memory), (u32)plan.parameters[RingParameters::stages], tiles);
  // The first copies are on their way while the others build the table.
  if (warp == producer_warp) {
    if (lane == 0) init_ring_barriers(ring);
    warp_barrier();
    block_barrier_arrive(1, ring_threads);
    if (elected_lane()) RingProducer<LogpForwardArguments>(a, plan, ring).run();
    return;
  }
  const float temperature = row_temperatures ? 1.0f : a.options.temperature;
  const float c = scale_of(temperature).c;
  if constexpr (ring_uses_table) {
    const u32 thread = threadIdx.x < producer_warp * 32 ? threadIdx.x : threadIdx.x - 32;
    build_leaf_table<Logits>(ring.base, c, temperature, thread, ring_threads - 32);
  }
  block_barrier_wait(1, ring_threads);
  if (warp > producer_warp) {
    RingFinisher<LogpForwardArguments>(a, plan, ring, lane).run(warp - producer_warp - 1);
  } else {
    ring_compute(ring, warp, lane, plain_window<Logits>(c, temperature));
  }
}

} // namespace canon

#endif
