// The producing warp of the ring plans: takes units of work, skips ignored rows, and copies the tiles of the others in.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_RING_PRODUCER_H
#define BILOGP_DEVICE_CUDA_HOPPER_RING_PRODUCER_H

#include "device/cuda/hopper/ring.h"
#include "rows/row_results.h"

namespace canon {

template<class Arguments> struct RingProducer {
  const Arguments& a;
  const GpuPlan& plan;
  const RingLayout& ring;
  const Work work;
  const i64 vocab;
  const bool leads; // the lane that issues copies
  RingPosition stage = {0, 1};
  u32 units_given = 0;

  CANON_MEMBER RingProducer(const Arguments& arguments, const GpuPlan& p, const RingLayout& layout, u32 lane)
      : a(arguments), plan(p), ring(layout), work(p, (int)layout.tiles), vocab(vocab_size_of(arguments.options)),
        leads(lane == 0) {}

  CANON_MEMBER void put_stage(u32 buffer, u32 tile_begin, u32 tile_end, float c, const Stored* row) {
    barrier_wait(ring.empty + stage.index * 8, stage.parity);
    if (leads) {
      const u32 full = ring.full + stage.index * 8;
      store_shared_vector(ring.stages + stage.index * 16, buffer, tile_begin, tile_end, bits_from_float(c));
      if (buffer == end_of_work) {
        barrier_arrive(full);
      } else {
        const i64 first = (i64)tile_begin * TileShape<Logits>::columns;
        const i64 last = (i64)tile_end * TileShape<Logits>::columns;
        const u32 bytes = ((u32)((last < vocab ? last : vocab) - first) * (u32)sizeof(Stored) + 15) & ~15u;
        barrier_expect(full, bytes);
        copy_in(ring.slot(stage.index * stage_tiles), row + first, bytes, full);
      }
    }
    stage.advance(1, ring.slots / stage_tiles);
  }

  // Gives the next row buffer a unit; `row` end_of_work tells the finishing warp that there is nothing more.
  CANON_MEMBER u32 give_unit(u32 row, int tile_begin, int tile_end) {
    const u32 buffer = units_given % row_buffers;
    barrier_wait(ring.unit_free + buffer * 8, ((units_given / row_buffers) & 1) ^ 1);
    if (leads) {
      store_shared_vector(ring.units + buffer * 16, row, (u32)tile_begin, (u32)tile_end, 0);
      const u32 missing = ring.tiles - (u32)(tile_end - tile_begin);
      if (missing != 0) barrier_arrive_many(ring.unit_done + buffer * 8, missing);
      barrier_arrive(ring.unit_given + buffer * 8);
    }
    ++units_given;
    return buffer;
  }

  CANON_MEMBER void put_unit(const Unit& unit) {
    const u32 buffer = give_unit((u32)unit.row, unit.tile_begin, unit.tile_end);
    const Stored* row = (const Stored*)a.logits + row_offset(unit.row, a.options, a.logits_strides);
    const float c = a.options.temperature_rows == nullptr ? 0.0f : row_scale(unit.row, a.options).c;
#pragma unroll 1
    for (int t = unit.tile_begin; t < unit.tile_end; t += stage_tiles)
      put_stage(buffer, (u32)t, (u32)(t + stage_tiles < unit.tile_end ? t + stage_tiles : unit.tile_end), c, row);
  }

  // The first id of a row, asked for early; whether the row is ignored only later.
  CANON_MEMBER i64 first_id(i64 number) const {
    return number < work.units ? (i64)load(row_ids(a, work.unit(number).row)) : 0;
  }
  CANON_MEMBER bool is_ignored(i64 row, i64 id) const {
    return id == a.options.ignore_index && (a.ids_per_row == 1 || all_ignored(a, row_ids(a, row)));
  }

  CANON_MEMBER void run() {
    i64 number = blockIdx.x;
    i64 id = first_id(number), later = leads ? next_unit(plan) : 0;
#pragma unroll 1
    while (number < work.units) {
      const Unit unit = work.unit(number);
      const i64 this_id = id;
      number = __shfl_sync(all_lanes, later, 0);
      id = first_id(number);
      if (leads) later = next_unit(plan);
      if (is_ignored(unit.row, this_id)) {
        if (unit.tile_begin == 0) write_ignored_row(a, unit.row);
      } else {
        put_unit(unit);
      }
    }
    for (int i = 0; i < compute_warps / stage_tiles; ++i) put_stage(end_of_work, 0, 0, 0.0f, nullptr);
    for (int i = 0; i < finishing_warps; ++i) give_unit(end_of_work, 0, 0);
    if (leads) no_more_units(plan);
  }
};

} // namespace canon

#endif
