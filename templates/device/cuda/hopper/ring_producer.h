// The producer of the ring plans: one lane takes units of work, looks whether their rows count, and copies tiles in.
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
  const i32 vocab;
  RingPosition stage = {0, 1};
  RingPosition unit_buffer = {0, 1};

  CANON_MEMBER RingProducer(const Arguments& arguments, const GpuPlan& p, const RingLayout& layout)
      : a(arguments), plan(p), ring(layout), work(p, (int)layout.tiles), vocab((i32)vocab_size_of(arguments.options)) {}

  // Gives the next row buffer a unit. An ignored row has no tiles; row `no_more` is for the finishing warps.
  CANON_MEMBER u32 give_unit(u32 row, int tile_begin, int tile_end) {
    const u32 buffer = unit_buffer.index;
    barrier_wait(ring.unit_free + buffer * 8, unit_buffer.parity);
    store_shared_vector(ring.unit(buffer), row, (u32)tile_begin, (u32)tile_end, 0);
    const u32 missing = ring.tiles - (u32)(tile_end - tile_begin);
    if (missing != 0) barrier_arrive_many(ring.unit_done + buffer * 8, missing * warp_arrivals);
    barrier_arrive(ring.unit_given + buffer * 8);
    unit_buffer.advance(1, row_buffers);
    return buffer;
  }

  // Tiles of rows at any address, each with the sixteen bytes that its last vector may reach into: `bytes` from `phase`
  // bytes behind `from`, which begins sixteen bytes that hold something of the row.
  CANON_MEMBER void put_tiles(u32 to, const unsigned char* from, u32 bytes, u32 phase, u32 full) const {
    const u32 tiles = (bytes + tile_bytes - 1) / tile_bytes, last = bytes - (tiles - 1) * tile_bytes;
    const u32 whole = (tile_bytes + phase + 15) & ~15u, rest = (last + phase + 15) & ~15u;
    barrier_expect(full, (tiles - 1) * whole + rest);
#pragma unroll 1
    for (u32 i = 0; i < tiles; ++i)
      copy_in(to + i * tile_pitch, from + i * tile_bytes, i + 1 < tiles ? whole : rest, full);
  }

  CANON_MEMBER void put_unit(const Unit& unit) {
    const u32 use = (unit_buffer.parity ^ 1) << 4; // of the buffer, for who waits for its window
    const u32 buffer = give_unit((u32)unit.row, unit.tile_begin, unit.tile_end);
    const u32 done = ring.unit_done + buffer * 8;
    u32 record = ring.record(buffer, (u32)unit.tile_begin);
    const i32 first = unit.tile_begin * TileShape<Logits>::columns;
    const Stored* from = (const Stored*)a.logits + row_offset(unit.row, a.options, a.logits_strides) + first;
    const u32 phase = any_address ? (u32)(u64)from & 15 : 0;
    i32 columns = vocab - first;
#pragma unroll 1
    for (int tiles = unit.tile_end - unit.tile_begin; tiles > 0; tiles -= stage_tiles) {
      const int count = tiles < stage_tiles ? tiles : stage_tiles, most = count * TileShape<Logits>::columns;
      const u32 bytes = (u32)(columns < most ? columns : most) * (u32)sizeof(Stored);
      const u32 full = ring.full + stage.index * 8, to = ring.stage(stage.index);
      barrier_wait(ring.empty + stage.index * 8, stage.parity);
      store_shared_vector(ring.stages + stage.index * 16, record, done, (u32)count | use | phase << 8, (u32)columns);
      if constexpr (any_address) {
        put_tiles(to, (const unsigned char*)from - phase, bytes, phase, full);
      } else {
        barrier_expect(full, (bytes + 15) & ~15u);
        copy_in(to, from, (bytes + 15) & ~15u, full);
      }
      from += stage_tiles * TileShape<Logits>::columns;
      columns -= stage_tiles * TileShape<Logits>::columns;
      record += stage_tiles * record_bytes;
      stage.advance(1, ring.stage_count);
    }
  }

  CANON_MEMBER void put_end() {
    for (int i = 0; i < stages_per_round; ++i) {
      barrier_wait(ring.empty + stage.index * 8, stage.parity);
      store_shared_vector(ring.stages + stage.index * 16, 0, no_more, 0, 0);
      barrier_arrive(ring.full + stage.index * 8);
      stage.advance(1, ring.stage_count);
    }
    for (int i = 0; i < finishing_warps; ++i) give_unit(no_more, 0, 0);
  }

  // The first id of a unit's row is asked for a unit ahead.
  CANON_MEMBER i64 first_id(i64 number) const {
    return number < work.units ? (i64)load(row_ids(a, work.unit(number).row)) : 0;
  }
  CANON_MEMBER bool is_ignored(i64 row, i64 id) const {
    if (id != a.options.ignore_index) return false;
    const TargetId* ids = row_ids(a, row);
    for (i64 k = 1; k < a.ids_per_row; ++k)
      if ((i64)load(ids + k * a.id_stride_k) != a.options.ignore_index) return false;
    return true;
  }

  CANON_MEMBER void run() {
    i64 number = blockIdx.x;
    // The first row is copied before it is known whether it is ignored; its finishing warp looks again.
    i64 id = a.options.ignore_index ^ 1;
    i64 later = next_unit(plan);
#pragma unroll 1
    while (number < work.units) {
      const Unit unit = work.unit(number);
      const i64 this_id = id;
      number = later;
      id = first_id(number);
      later = next_unit(plan);
      if (!is_ignored(unit.row, this_id)) {
        put_unit(unit);
      } else if (unit.tile_begin == 0) {
        give_unit((u32)unit.row, 0, 0);
      }
    }
    put_end();
    no_more_units(plan);
  }
};

} // namespace canon

#endif
