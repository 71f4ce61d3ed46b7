// The finishing warps of the ring plans: the tree above the tiles, then the row's results, off the way of the copies.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_RING_FINISHER_H
#define BILOGP_DEVICE_CUDA_HOPPER_RING_FINISHER_H

#include "device/cuda/hopper/ring.h"
#include "device/cuda/hopper/row_answer.h"
#include "device/cuda/hopper/row_nodes.h"

namespace canon {

// Sum of a tile's lane sums, one tile per lane of the warp.
CANON_FN float tree_of_record(u32 record) {
  if constexpr (tile_sums == 1) {
    return float_from_bits(load_shared(record));
  } else {
    float s[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float t[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) t[i] = float_from_bits(load_shared(record + (u32)(j * 4 + i) * 4));
      s[j] = tree_of_4(t);
    }
    return tree_of_8(s);
  }
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
      const u32 record = ring.record(buffer, (u32)(here ? tile : begin));
      nodes.s[i] = here ? tree_of_record(record) : 0.0f;
      nodes.R[i] = here ? (i32)load_shared(record + tile_sums * 4) : plain_reference;
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
      const Vector unit = load_shared_vector(ring.unit(buffer));
      if (unit.word[0] == no_more) return;
      const i64 row = unit.word[0];
      const RowPlace row_at = row_place(row, a.options); // one division, if any, for all tensors
      const int begin = (int)unit.word[1], end = (int)unit.word[2];
      if (begin == end) {
        if (row_temperatures && lane == 0) {
          barrier_arrive(ring.unit_window + buffer * 8);
          barrier_wait(ring.unit_window + buffer * 8, parity); // no tile does; a phase is waited for before the next
        }
        barrier_wait(ring.unit_done + buffer * 8, parity);
        barrier_arrive(ring.unit_free + buffer * 8);
        ignore_row(a, row_at);
        continue;
      }
      const TargetId* ids = row_ids(a, row_at);
      const Stored* logits = (const Stored*)a.logits + row_offset(row_at, a.options, a.logits_strides);
      const Scale scale = row_scale(row_at, a.options);
      if constexpr (row_temperatures) {
        const PlainWindow w = plain_window<Logits>(scale.c, 1.0f);
        if (lane == 0) {
          store_shared_vector(ring.unit(buffer) + 16, bits_from_float(w.c), bits_from_float(w.inverse), w.limit,
                              w.floor);
          barrier_arrive(ring.unit_window + buffer * 8);
        }
      }
      const RowTarget target = row_target(a, ids, logits, vocab, scale);
      const u64 place = answer_place(a, row_at);
      barrier_wait(ring.unit_done + buffer * 8, parity);
      read_tiles(buffer, begin, end);
      barrier_arrive(ring.unit_free + buffer * 8);
      // Before its pieces are counted: those of an ignored row that were not copied are not among them.
      if (!target.is_ordinary && target.id == a.options.ignore_index && all_ignored(a, ids)) {
        ignore_row(a, row_at);
        continue;
      }
      if (end - begin < work.tiles && !meets_other_pieces(row, begin, end)) continue;
      const Node sum = scale.valid ? nodes.root() : poison_node();
      answer_row(a, row_at, plan.first_row + row, ids, logits, vocab, sum, scale, target, place);
    }
  }
};

} // namespace canon

#endif
