// The ring of tiles between memory and the computing warps, and where everything lies in shared memory.
//
// A stage is a few tiles of one unit that are copied in and freed together. A place in a stage always belongs to the
// same warp (its warps come round after a whole number of stages, and the ring is a multiple of those): bulk copies
// complete out of order, and a wait by parity could pass on a place whose fill before the last is still pending.
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
constexpr int stages_per_round = compute_warps / stage_tiles; // that all computing warps take together
// Rows with temperatures of their own have no table in common.
constexpr bool row_temperatures = BILOGP_ROW_TEMPERATURES != 0;
// Rows lie at any address: tiles are copied from the multiple of sixteen bytes before them, each to a place of its own,
// and shifted as they are read.
constexpr bool any_address = BILOGP_ANY_ADDRESS != 0;
constexpr u32 tile_pitch = any_address ? tile_bytes + span_bytes : tile_bytes, stage_bytes = stage_tiles * tile_pitch;
constexpr bool ring_uses_table = LeafTable<Logits>::exists && !row_temperatures;
// Of each computing warp.
constexpr bool has_window_tables = ring_uses_table && !any_address;
static_assert(compute_warps % stage_tiles == 0, "a warp's place in its stages is always the same");
static_assert(stage_tiles < 16, "how many tiles a stage holds is told in four bits");

// What a tile leaves for its row: the lanes' sums and their reference, or, where there is time to add the lanes up at
// once, one sum and its reference. 33 words apart, so that lanes that read one tile each meet no bank conflicts.
constexpr int tile_sums = Words<Logits>::columns == 2 ? 32 : 1;
constexpr u32 record_bytes = (tile_sums + 1) * 4;

// Of a unit: what it is, and with temperatures per row the row's window.
constexpr u32 unit_bytes = row_temperatures ? 32 : 16;

struct RingLayout {
  u32 base, stage_count, tiles;
  u32 window_tables, records, units, stages, full, empty, unit_given, unit_done, unit_free, unit_window;

  CANON_MEMBER RingLayout(u32 base_address, u32 stages_of_ring, u32 row_tiles)
      : base(base_address), stage_count(stages_of_ring), tiles(row_tiles) {
    window_tables = base + ring_end(stage_count);
    units = window_tables + (has_window_tables ? compute_warps * window_table_bytes : 0);
    stages = units + row_buffers * unit_bytes;
    full = stages + stage_count * 16;
    empty = full + stage_count * 8;
    unit_given = empty + stage_count * 8;
    unit_done = unit_given + row_buffers * 8;
    unit_free = unit_done + row_buffers * 8;
    unit_window = unit_free + row_buffers * 8;
    records = unit_window + (row_temperatures ? row_buffers * 8 : 0);
  }

  // Stages lie between the halves of the leaf table where there is one, and behind it.
  static constexpr u32 stages_between = (table_negative - table_half) / stage_bytes;
  CANON_MEMBER static u32 ring_end(u32 stage_count) {
    if constexpr (!ring_uses_table) return stage_count * stage_bytes;
    return table_end + (stage_count > stages_between ? (stage_count - stages_between) * stage_bytes : 0);
  }
  CANON_MEMBER u32 stage(u32 i) const {
    if constexpr (!ring_uses_table) return base + i * stage_bytes;
    return base + i * stage_bytes + (i < stages_between ? table_half : table_end - stages_between * stage_bytes);
  }
  CANON_MEMBER u32 unit(u32 buffer) const { return units + buffer * unit_bytes; }
  CANON_MEMBER u32 record(u32 buffer, u32 tile) const { return records + (buffer * tiles + tile) * record_bytes; }
};

// All of it is handed from warp to warp by barriers, where every lane that wrote or read something arrives for itself.
// One arrival per warp behind a barrier of its own would do and takes no less time, but racecheck follows threads.
//
// A stage as four words of shared memory: address of its first tile's record, the barrier that counts the unit's tiles,
// how many tiles, how many columns from its first one to the end of the row. Beside the number of tiles are the parity
// of the unit's buffer, from bit 4 on, and how many bytes the row is behind a multiple of sixteen, from bit 8 on. Its
// barrier being `no_more` ends the work. A unit as four words: row, first tile, end tile, 0; where rows have their own
// temperatures, four words more are the row's window, for which its finishing warp sees: c, 1 / c, limit, floor.
constexpr u32 no_more = 0xffffffffu;
constexpr u32 warp_arrivals = warp_lanes; // of a warp at a barrier

CANON_FN void init_ring_barriers(const RingLayout& ring) {
  for (u32 i = 0; i < ring.stage_count; ++i) {
    barrier_init(ring.full + i * 8, 1);
    barrier_init(ring.empty + i * 8, stage_tiles * warp_arrivals);
  }
  for (u32 i = 0; i < row_buffers; ++i) {
    barrier_init(ring.unit_given + i * 8, 1);
    barrier_init(ring.unit_done + i * 8, ring.tiles * warp_arrivals);
    barrier_init(ring.unit_free + i * 8, warp_arrivals);
    if (row_temperatures) barrier_init(ring.unit_window + i * 8, 1);
  }
  barriers_are_ready();
}

// Steps through the stages and knows the parity to wait for.
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
