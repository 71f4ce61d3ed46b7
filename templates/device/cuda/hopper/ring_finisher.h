// The finishing warps of the ring plans: the tree above the tiles, then the row's results, off the way of the copies.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_RING_FINISHER_H
#define BILOGP_DEVICE_CUDA_HOPPER_RING_FINISHER_H

#include "device/cuda/hopper/ring.h"
#include "device/cuda/hopper/row_nodes.h"
#include "rows/row_results.h"

namespace canon {

// Sum of a tile's 32 lane sums, one tile per lane; without bank conflicts, as spans are read.
CANON_FN float lane_sums_of_tile(const RingLayout& ring, u32 place, u32 lane) {
  if constexpr (tile_sums == 1) return float_from_bits(load_shared(ring.sums + place * 4));
  const u32 address = (ring.sums + place * 128) | ((lane & 7) << 4);
  float s[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const Vector v = load_shared_vector(address ^ (u32)(j << 4));
    const float t[4] = {float_from_bits(v.word[0]), float_from_bits(v.word[1]), float_from_bits(v.word[2]),
                        float_from_bits(v.word[3])};
    s[j] = tree_of_4(t);
  }
  return tree_of_8(s);
}

template<class Arguments> struct RingFinisher {
  const Arguments& a;
  const GpuPlan& plan;
  const RingLayout& ring;
  const Work work;
  const i64 vocab;
  const u32 lane;
  RowNodes nodes;

  CANON_MEMBER RingFinisher(const Arguments& arguments, const GpuPlan& p, const RingLayout& layout, u32 lane_of_warp)
      : a(arguments), plan(p), ring(layout), work(p, (int)layout.tiles), vocab(vocab_size_of(arguments.options)),
        lane(lane_of_warp) {}

  CANON_MEMBER void read_tiles(u32 buffer, int begin, int end) {
#pragma unroll
    for (int i = 0; i < nodes_per_lane; ++i) {
      const int tile = i * 32 + (int)lane;
      const bool here = tile >= begin && tile < end;
      const u32 place = buffer * ring.tiles + (u32)(here ? tile : begin);
      nodes.s[i] = here ? lane_sums_of_tile(ring, place, lane) : 0.0f;
      nodes.R[i] = here ? (i32)load_shared(ring.references + place * 4) : plain_reference;
    }
  }

  // A piece of a cut row leaves its nodes in scratch memory; whoever brings the last one goes on with all of them.
  CANON_MEMBER bool meets_other_pieces(i64 row, int begin, int end) {
    i32* scratch = plan.nodes + (row - work.whole_rows) * work.tiles * 2;
    u32* ticket = plan.tickets + RingTickets::rows + (row - work.whole_rows);
#pragma unroll
    for (int i = 0; i < nodes_per_lane; ++i) {
      const int tile = i * 32 + (int)lane;
      if (tile >= begin && tile < end) store_scratch(scratch + tile * 2, bits_from_float(nodes.s[i]), (u32)nodes.R[i]);
    }
    memory_fence();
    warp_barrier();
    u32 brought = 0;
    if (lane == 0) brought = take_tickets(ticket, (u32)(end - begin)) + (u32)(end - begin);
    if (__shfl_sync(all_lanes, brought, 0) != (u32)work.tiles) return false;
    memory_fence();
    if (lane == 0) *ticket = 0;
#pragma unroll
    for (int i = 0; i < nodes_per_lane; ++i) {
      const int tile = i * 32 + (int)lane;
      u32 s = 0, R = plain_reference;
      if (tile < work.tiles) load_scratch(scratch + tile * 2, s, R);
      nodes.s[i] = float_from_bits(s);
      nodes.R[i] = (i32)R;
    }
    return true;
  }

  CANON_MEMBER void run(u32 first) {
#pragma unroll 1
    for (u32 k = first;; k += finishing_warps) {
      const u32 buffer = k % row_buffers, parity = (k / row_buffers) & 1;
      barrier_wait(ring.unit_given + buffer * 8, parity);
      const Vector unit = load_shared_vector(ring.units + buffer * 16);
      if (unit.word[0] == end_of_work) return;
      const i64 row = unit.word[0];
      const int begin = (int)unit.word[1], end = (int)unit.word[2];
      const TargetId* ids = row_ids(a, row);
      const Stored* logits = (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides);
      const i64 id = (i64)load(ids);
      const float first_logit = Logits::widen(load(logits + (id >= 0 && id < vocab ? id : 0)));
      const Scale scale = row_scale(row, a.options);
      barrier_wait(ring.unit_done + buffer * 8, parity);
      read_tiles(buffer, begin, end);
      warp_barrier();
      if (lane == 0) barrier_arrive(ring.unit_free + buffer * 8);
      if (end - begin < work.tiles && !meets_other_pieces(row, begin, end)) continue;
      const Node sum = scale.valid ? nodes.root() : poison_node();
      write_answers(a, row, plan.first_row + row, ids, vocab, sum, scale, [&](i64 which, i64 target) {
        return which == 0 ? first_logit : Logits::widen(load(logits + target));
      });
    }
  }
};

} // namespace canon

#endif
