// logp_forward, plan 1: persistent blocks, one per multiprocessor, around a ring of tiles. One warp copies rows in, most
// warps sum tiles, and a few finish rows.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_LOGP_FORWARD_RING_H
#define BILOGP_DEVICE_CUDA_HOPPER_LOGP_FORWARD_RING_H

#include "device/cuda/hopper/ring_finisher.h"
#include "device/cuda/hopper/ring_producer.h"
#include "device/cuda/hopper/tile_masked.h"

namespace canon {

// Sums tiles. A warp that met a tile outside the plain window begins the next ones with the way that served, for a while:
// the longer, the more often that was right.
struct TileSummer {
  static constexpr int longest_detour = 32;
  u32 table, lane;
  PlainWindow window;
  TileWay way = TileWay::plain;
  int detour = 0, next_detour = 1;
  float last_maximum = 0.0f;

  CANON_MEMBER TileSummer(u32 leaf_table, u32 lane_of_warp, const PlainWindow& w)
      : table(leaf_table), lane(lane_of_warp), window(w) {}

  // The tile of this lane's span at `span`; `rest` columns from the span's first one are left in the row.
  CANON_MEMBER TileSum sum(u32 span, int rest) {
    constexpr int span_columns = TileShape<Logits>::span_columns;
    const bool has_columns = rest > 0;
    const bool whole_spans = (BILOGP_VOCAB > 0 && BILOGP_VOCAB % span_columns == 0) ||
                             __all_sync(all_lanes, !has_columns || rest >= span_columns);
    if (way == TileWay::plain && whole_spans) {
      u32 magnitude = 0;
      const float s = plain_span<Logits, ring_uses_table>(span, table, window, magnitude);
      const bool in_window = !has_columns || Words<Logits>::largest_pattern(magnitude) <= window.limit;
      if (__all_sync(all_lanes, in_window)) {
        next_detour -= next_detour > 1 ? 1 : 0;
        return TileSum{has_columns ? s : 0.0f, plain_reference, TileWay::plain, 0.0f};
      }
      detour = next_detour;
      next_detour = next_detour < longest_detour ? 2 * next_detour : longest_detour;
    }
    if (__any_sync(all_lanes, rest < span_columns)) cut_span<Logits>(span, lane, rest < 0 ? 0 : rest);
    const TileSum sum = masked_tile<Logits, ring_uses_table>(span, lane, table, window, way, last_maximum);
    last_maximum = sum.maximum;
    // A run of empty tiles ends with a tile that is probably plain.
    if (sum.way == TileWay::empty || way == TileWay::empty)
      way = sum.way == TileWay::empty ? TileWay::empty : TileWay::plain;
    else
      way = --detour > 0 ? sum.way : TileWay::plain;
    return sum;
  }
};

CANON_FN void ring_compute(const RingLayout& ring, u32 warp, u32 lane, const PlainWindow& window) {
  TileSummer summer(ring.base, lane, window);
  const u32 place = warp % stage_tiles;
  const u32 span_offset = span_address(place * tile_bytes, lane);
  const int columns_before = (int)place * TileShape<Logits>::columns + (int)lane * TileShape<Logits>::span_columns;
  RingPosition stage = {warp / stage_tiles, 0};
#pragma unroll 1
  for (;;) {
    barrier_wait(ring.full + stage.index * 8, stage.parity);
    const Vector given = load_shared_vector(ring.stages + stage.index * 16);
    const u32 done = given.word[1];
    if (done == no_more) return;
    if (place < given.word[2]) {
      if constexpr (row_temperatures) {
        const float c = float_from_bits(load_shared(ring.units + (done - ring.unit_done) * 2 + 12));
        if (c != summer.window.c) summer.window = plain_window<Logits>(c, 1.0f);
      }
      TileSum sum = summer.sum(ring.stage(stage.index) + span_offset, (int)given.word[3] - columns_before);
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
      warp_barrier();
      barrier_arrive_once(done, lane);
    }
    barrier_arrive_once(ring.empty + stage.index * 8, lane);
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
