// logp_with_gradient by clusters: what the blocks of a cluster hold, and how their warps walk through it.
//
// A row lives in the shared memory of a cluster, each block holding a share of its tiles. Every computing warp takes
// turns: the sum of a tile that is one step ahead (phase A), then the gradient of the tile before (phase B), whose row
// is known by then; so the exchange of sums between the blocks is not waited for. Phase B frees the places in the ring.
//
// Parities are safe although a place in the ring passes from warp to warp: a warp that waits for a tile has written the
// gradient of its tile two steps back, which all earlier tiles of its row must have reached, and the ring is no shorter
// than two steps of all warps (the host sees to it).
#ifndef BILOGP_DEVICE_CUDA_HOPPER_FUSED_RING_H
#define BILOGP_DEVICE_CUDA_HOPPER_FUSED_RING_H

#include "device/cuda/hopper/cluster.h"
#include "device/cuda/hopper/span.h"
#include "device/gpu/plan.h"
#include "rows/specialization.h"

namespace canon {

constexpr int fused_blocks = BILOGP_CLUSTER;
constexpr int fused_warps = BILOGP_WARPS, fused_finishers = 2;
constexpr int fused_threads = (fused_warps + 1 + fused_finishers) * 32;
constexpr int fused_stage_tiles = 2;
constexpr u32 fused_stage_bytes = fused_stage_tiles * tile_bytes;
// A power of two, more than twice the rows that the ring may hold (the host sees to it): a block can be that far ahead
// of the finishing warps of another one, whose sums must not be overwritten.
constexpr int fused_row_buffers = fused_blocks == 8 ? 16 : 8;
constexpr u32 row_info_bytes = 48;

// What phase B needs of a row, in shared memory. `scaled` is the factor of plain leaves, which are times 2^-6.
enum class GradientWay : i32 { plain, near, far, zeros, nans };
struct RowInfo {
  float scaled, factor, low, g;
  float m;
  i32 E, way, target;
  i32 reserved[4];
};
static_assert(sizeof(RowInfo) == row_info_bytes, "laid out by hand");

struct FusedLayout {
  u32 base, stage_count, tiles;
  u32 sums, infos, ignored, full, empty, sums_here, info_here;

  CANON_MEMBER FusedLayout(u32 base_address, u32 stages_of_ring, u32 row_tiles)
      : base(base_address), stage_count(stages_of_ring), tiles(row_tiles) {
    sums = base + ring_end(stage_count);
    infos = sums + fused_row_buffers * tiles * 16;
    ignored = infos + fused_row_buffers * row_info_bytes;
    full = ignored + fused_row_buffers * 4;
    empty = full + stage_count * 8;
    sums_here = empty + stage_count * 8;
    info_here = sums_here + fused_row_buffers * 8;
  }
  static constexpr u32 stages_between = (table_negative - table_half) / fused_stage_bytes;
  CANON_MEMBER static u32 ring_end(u32 stage_count) {
    if constexpr (!LeafTable<Logits>::exists) return stage_count * fused_stage_bytes;
    return table_end + (stage_count > stages_between ? (stage_count - stages_between) * fused_stage_bytes : 0);
  }
  CANON_MEMBER u32 stage(u32 i) const {
    if constexpr (!LeafTable<Logits>::exists) return base + i * fused_stage_bytes;
    return base + i * fused_stage_bytes +
           (i < stages_between ? table_half : table_end - stages_between * fused_stage_bytes);
  }
  CANON_MEMBER u32 sum_of(u32 buffer, u32 tile) const { return sums + (buffer * tiles + tile) * 16; }
};

CANON_FN void init_fused_barriers(const FusedLayout& ring) {
  for (u32 i = 0; i < ring.stage_count; ++i) {
    barrier_init(ring.full + i * 8, 1);
    barrier_init(ring.empty + i * 8, fused_stage_tiles);
  }
  for (u32 i = 0; i < fused_row_buffers; ++i) {
    // A block alone counts its tiles; the blocks of a cluster count bytes that they send each other.
    barrier_init(ring.sums_here + i * 8, fused_blocks == 1 ? ring.tiles : 1);
    barrier_init(ring.info_here + i * 8, 1);
  }
  barriers_are_ready();
}

// This block's share of the work: rows `first + k * step`, tiles [tile_begin, tile_end) of each.
struct FusedShare {
  i64 first, step, rows;
  int tile_begin, tile_end, stages; // of a row

  CANON_MEMBER FusedShare(const GpuPlan& plan, u32 tiles) {
    const u32 rank = fused_blocks > 1 ? cluster_rank() : 0;
    first = fused_blocks > 1 ? cluster_index() : blockIdx.x;
    step = fused_blocks > 1 ? cluster_count() : gridDim.x;
    rows = first < plan.rows ? (plan.rows - first + step - 1) / step : 0;
    tile_begin = (int)(rank * tiles / fused_blocks);
    tile_end = (int)((rank + 1) * tiles / fused_blocks);
    stages = (tile_end - tile_begin + fused_stage_tiles - 1) / fused_stage_tiles;
  }
  CANON_MEMBER int count() const { return tile_end - tile_begin; }
  CANON_MEMBER i64 row(i64 k) const { return first + k * step; }
};

// Where a warp is in its block's tiles, row after row.
struct FusedPosition {
  i32 k, i;          // row of the share, tile of the row's part
  u32 stage, parity; // of the ring
  CANON_MEMBER FusedPosition(const FusedShare& share, u32 stage_count, int warp) : k(0), i(0), stage(0), parity(0) {
    move(share, stage_count, warp);
  }
  CANON_MEMBER void move(const FusedShare& share, u32 stage_count, int tiles) {
    const int before = i / fused_stage_tiles;
    i += tiles;
    int rows = 0;
    while (i >= share.count()) {
      i -= share.count();
      ++rows;
    }
    k += rows;
    stage += (u32)(rows * share.stages + i / fused_stage_tiles - before);
    while (stage >= stage_count) {
      stage -= stage_count;
      parity ^= 1;
    }
  }
  CANON_MEMBER u32 buffer() const { return (u32)k % fused_row_buffers; }
  CANON_MEMBER u32 row_parity() const { return ((u32)k / fused_row_buffers) & 1; }
};

} // namespace canon

#endif
