// The ring of tiles between memory and the computing warps, and where everything lies in shared memory.
//
// A stage is a few tiles of one unit that are copied in and freed together. A slot of the ring always belongs to the same
// warp (slots are a multiple of the warps and of a stage's tiles): bulk copies complete out of order, and a wait by parity
// could pass on a slot whose fill before the last is still pending.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_RING_H
#define BILOGP_DEVICE_CUDA_HOPPER_RING_H

#include "device/cuda/hopper/span.h"
#include "device/cuda/hopper/work.h"
#include "rows/specialization.h"

namespace canon {

constexpr int compute_warps = BILOGP_WARPS;
constexpr int stage_tiles = BILOGP_STAGE_TILES;
constexpr int row_buffers = BILOGP_ROW_BUFFERS; // rows whose tile sums are on the way to the finishing warps
constexpr int finishing_warps = BILOGP_FINISHING_WARPS;
constexpr int ring_threads = (compute_warps + 1 + finishing_warps) * 32;
constexpr int producer_warp = compute_warps;

// Sums that a tile leaves for its row: one per lane, or one, where there is time to add them up at once.
constexpr int tile_sums = Words<Logits>::columns == 2 ? 32 : 1;

struct RingLayout {
  u32 base, slots, tiles;
  u32 sums, references, units, stages, full, empty, unit_given, unit_done, unit_free;

  CANON_MEMBER RingLayout(u32 base_address, u32 slot_count, u32 row_tiles) : base(base_address), slots(slot_count), tiles(row_tiles) {
    const u32 stage_count = slots / stage_tiles;
    sums = base + ring_end(slots);
    references = sums + row_buffers * tiles * tile_sums * 4;
    units = (references + row_buffers * tiles * 4 + 15) & ~15u;
    stages = units + row_buffers * 16;
    full = stages + stage_count * 16;
    empty = full + stage_count * 8;
    unit_given = empty + stage_count * 8;
    unit_done = unit_given + row_buffers * 8;
    unit_free = unit_done + row_buffers * 8;
  }

  // Tiles lie between the halves of the leaf table where there is one, and behind it.
  static constexpr u32 slots_between = (table_negative - table_half) / tile_bytes;
  CANON_MEMBER static u32 ring_end(u32 slots) {
    if constexpr (!LeafTable<Logits>::exists) return slots * tile_bytes;
    return table_end + (slots > slots_between ? (slots - slots_between) * tile_bytes : 0);
  }
  CANON_MEMBER u32 slot(u32 i) const {
    if constexpr (!LeafTable<Logits>::exists) return base + i * tile_bytes;
    return base + table_half + i * tile_bytes + (i >= slots_between ? table_half : 0);
  }
};


// What a stage or a unit is, as four words of shared memory: (row buffer, first tile, end tile, c), (row, first tile, end
// tile). A negative first word ends the work.
constexpr u32 end_of_work = 0xffffffffu;

CANON_FN void init_ring_barriers(const RingLayout& ring) {
  for (u32 i = 0; i < ring.slots / stage_tiles; ++i) {
    barrier_init(ring.full + i * 8, 1);
    barrier_init(ring.empty + i * 8, stage_tiles);
  }
  for (u32 i = 0; i < row_buffers; ++i) {
    barrier_init(ring.unit_given + i * 8, 1);
    barrier_init(ring.unit_done + i * 8, ring.tiles);
    barrier_init(ring.unit_free + i * 8, 1);
  }
  barriers_are_ready();
}

// Steps through the slots that belong to one warp, or through the stages, and knows the parity to wait for.
struct RingPosition {
  u32 index, parity;
  CANON_MEMBER void advance(u32 step, u32 size) {
    index += step;
    if (index < size) return;
    index -= size;
    parity ^= 1;
  }
};

} // namespace canon

#endif
