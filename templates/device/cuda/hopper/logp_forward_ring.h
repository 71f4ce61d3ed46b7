// logp_forward, plan 1: persistent blocks, one per multiprocessor, around a ring of tiles. One warp copies rows in, most
// warps sum tiles, and a few finish rows.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_LOGP_FORWARD_RING_H
#define BILOGP_DEVICE_CUDA_HOPPER_LOGP_FORWARD_RING_H

#include "device/cuda/hopper/ring_finisher.h"
#include "device/cuda/hopper/ring_producer.h"
#include "device/cuda/hopper/tile_masked.h"

namespace canon {

// Sums tiles. A warp that met a tile outside the plain window goes straight to the masked ways for a while, the longer the
// more often that was right.
template<bool UseTable> struct TileSummer {
  static constexpr int longest_detour = 32;
  u32 table, lane;
  PlainWindow window;
  int detour = 0, next_detour = 1;

  CANON_MEMBER TileSummer(u32 leaf_table, u32 lane_of_warp, const PlainWindow& w)
      : table(leaf_table), lane(lane_of_warp), window(w) {}

  // `live`: how many of the lane's columns count.
  CANON_MEMBER TileSum sum(u32 tile, int live) {
    constexpr int span_columns = TileShape<Logits>::span_columns;
    const bool whole_spans = (BILOGP_VOCAB > 0 && BILOGP_VOCAB % span_columns == 0) ||
                             __all_sync(all_lanes, live == 0 || live == span_columns);
    if (detour == 0 && whole_spans) {
      u32 magnitude = 0;
      float s = plain_span<Logits, UseTable>(span_address(tile, lane), table, window, magnitude);
      const bool in_window = live == 0 || Words<Logits>::largest_pattern(magnitude) <= window.limit;
      if (__all_sync(all_lanes, in_window)) {
        if (next_detour > 1) --next_detour;
        return TileSum{live == 0 ? 0.0f : s, plain_reference};
      }
      detour = next_detour;
      next_detour = next_detour < longest_detour ? 2 * next_detour : longest_detour;
    } else if (detour > 0) {
      --detour;
    }
    return masked_tile<Logits, UseTable>(tile, lane, live, table, window);
  }
};

template<bool UseTable> CANON_FN void ring_compute(const RingLayout& ring, u32 warp, u32 lane, int vocab, PlainWindow window) {
  TileSummer<UseTable> summer(ring.base, lane, window);
  RingPosition slot = {warp, 0};
#pragma unroll 1
  for (;;) {
    const u32 stage = slot.index / stage_tiles;
    barrier_wait(ring.full + stage * 8, slot.parity);
    const Vector given = load_shared_vector(ring.stages + stage * 16);
    if (given.word[0] == end_of_work) return;
    const u32 buffer = given.word[0], tile = given.word[1] + slot.index % stage_tiles;
    if (tile < given.word[2]) {
      if constexpr (!UseTable) { // each row may have its own temperature
        const float c = float_from_bits(given.word[3]);
        if (c != 0.0f && c != summer.window.c) summer.window = plain_window<Logits>(c, 1.0f);
      }
      const int begin = (int)(tile * TileShape<Logits>::columns + lane * TileShape<Logits>::span_columns);
      const int rest = vocab - begin;
      const int live = rest < 0 ? 0 : rest < TileShape<Logits>::span_columns ? rest : TileShape<Logits>::span_columns;
      TileSum sum = summer.sum(ring.slot(slot.index), live);
      const u32 place = buffer * ring.tiles + tile;
      if constexpr (tile_sums == 32) {
        store_shared(ring.sums + place * 128 + lane * 4, bits_from_float(sum.s));
      } else {
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2)
          sum.s = sum.s + __shfl_xor_sync(all_lanes, sum.s, distance);
        if (lane == 0) store_shared(ring.sums + place * 4, bits_from_float(sum.s));
      }
      if (lane == 0) store_shared(ring.references + place * 4, (u32)sum.R);
      warp_barrier();
      if (lane == 0) barrier_arrive(ring.unit_done + buffer * 8);
    }
    if (lane == 0) barrier_arrive(ring.empty + stage * 8);
    slot.advance(compute_warps, ring.slots);
  }
}

CANON_FN void forward_ring(const LogpForwardArguments& a, const GpuPlan& plan) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int vocab = (int)vocab_size_of(a.options);
  const u32 tiles = (u32)((vocab + TileShape<Logits>::columns - 1) / TileShape<Logits>::columns);
  const RingLayout ring(shared_address(shared_memory), (u32)plan.parameters[RingParameters::slots], tiles);
  const bool one_temperature = a.options.temperature_rows == nullptr;
  // The first copies are on their way while the others build the table.
  if (warp == producer_warp) {
    if (lane == 0) init_ring_barriers(ring);
    warp_barrier();
    block_barrier_arrive(1, ring_threads);
    RingProducer<LogpForwardArguments>(a, plan, ring, lane).run();
    return;
  }
  const float temperature = one_temperature ? a.options.temperature : 1.0f;
  const float c = scale_of(temperature).c;
  if constexpr (LeafTable<Logits>::exists) {
    const u32 thread = threadIdx.x < producer_warp * 32 ? threadIdx.x : threadIdx.x - 32;
    if (one_temperature) build_leaf_table<Logits>(ring.base, c, temperature, thread, ring_threads - 32);
  }
  block_barrier_wait(1, ring_threads);
  if (warp > producer_warp) {
    RingFinisher<LogpForwardArguments>(a, plan, ring, lane).run(warp - producer_warp - 1);
    return;
  }
  const PlainWindow window = plain_window<Logits>(c, temperature);
  if constexpr (LeafTable<Logits>::exists) {
    if (one_temperature) return ring_compute<true>(ring, warp, lane, vocab, window);
  }
  ring_compute<false>(ring, warp, lane, vocab, window);
}

} // namespace canon

#endif
