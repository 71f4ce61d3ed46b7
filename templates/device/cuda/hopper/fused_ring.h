// logp_with_gradient by clusters: what the blocks of a cluster hold, and how their warps walk through it.
//
// A row lives in the shared memory of a cluster, each block holding a share of its tiles. Some warps sum the tiles as
// they come in (phase A) and send the sums to all blocks, each of which joins them; the other warps make gradients of
// tiles whose row is known (phase B) and fill their places in the ring again. As far as the ring reaches, nobody waits
// for the exchange between the blocks.
//
// Parities are safe: a place in the ring always belongs to the same two warps (a wait by parity could else pass on a
// fill before the last, for copies complete out of order). Buffers for sums are safe, too: rows become known in their
// order, and the ring is no longer than half as many rows as there are buffers (the host sees to it). Who sums a tile
// of row k knows that the tile a ring before is done with; so with n buffers the rows up to k - n / 2 are known to its
// block, their sums have come from all blocks, and these know the rows up to k - n. What is told of a row is written
// over when all gradient warps have left it.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_FUSED_RING_H
#define BILOGP_DEVICE_CUDA_HOPPER_FUSED_RING_H

#include "device/cuda/hopper/cluster.h"
#include "device/cuda/hopper/span.h"
#include "device/gpu/plan.h"
#include "rows/specialization.h"

namespace canon {

constexpr int fused_blocks = BILOGP_CLUSTER;
constexpr int fused_warps = BILOGP_WARPS, fused_sum_warps = BILOGP_SUM_WARPS, fused_finishers = 4;
constexpr int fused_gradient_warps = fused_warps - fused_sum_warps;
constexpr int fused_threads = (fused_warps + fused_finishers) * 32;
constexpr int fused_row_buffers = BILOGP_ROW_BUFFERS;
static_assert(fused_row_buffers % fused_finishers == 0, "a buffer always belongs to the same finishing warp");

// What phase B needs of a row, in shared memory. `scaled` is the factor of plain leaves, which are times 2^-6.
enum class GradientWay : i32 { plain, near, far, zeros, nans };
struct RowInfo {
  float scaled, factor, low, g;
  float m;
  i32 E, way, target;
};
constexpr u32 row_info_bytes = 32;
static_assert(sizeof(RowInfo) == row_info_bytes, "laid out by hand");

// A tile's sum as two words: the sum at its reference, and of a plain tile the largest magnitude, of another one the
// reference, marked by the highest bit. No reference reaches 2^30 (the contract's B); a tile of nothing but zeros is at
// that of the plain window.
constexpr u32 fused_sum_bytes = 8;
constexpr u32 not_plain = 0x80000000u;
CANON_FN u32 not_plain_reference(i32 R) {
  return (u32)(R + 0x40000000) | not_plain;
}
CANON_FN i32 reference_of(u32 word) {
  return word < not_plain ? plain_reference : (i32)(word - not_plain) - 0x40000000;
}

// A number that the compiler shall keep, and not work out again wherever it is used.
CANON_FN u32 kept(u32 value) {
  asm volatile("" : "+r"(value));
  return value;
}

CANON_FN u32 row_buffer(i32 k) {
  return (u32)k % fused_row_buffers;
}
CANON_FN u32 row_parity(i32 k) {
  return ((u32)k / fused_row_buffers) & 1;
}

// First the small things, then tiles from the next multiple of their size on, around the halves of the leaf table,
// which lie at multiples of theirs. Addresses count from the begin of the block's shared memory; the bits above are the
// block's rank in the cluster.
struct FusedLayout {
  static constexpr u32 window_mask = 0x00ffffffu;
  u32 places, tiles, table, first_tile;
  u32 sums, infos, ignored, full, sums_here, info_here, info_done;

  CANON_MEMBER FusedLayout(u32 base, u32 places_of_ring, u32 row_tiles) : places(places_of_ring), tiles(row_tiles) {
    infos = kept(base);
    sums_here = infos + fused_row_buffers * row_info_bytes;
    info_here = sums_here + fused_row_buffers * 8;
    info_done = info_here + fused_row_buffers * 8;
    sums = info_done + fused_row_buffers * 8;
    full = sums + fused_row_buffers * tiles * fused_sum_bytes;
    ignored = kept(full + places * 8);
    first_tile = kept((ignored + places * 4 + tile_bytes - 1) & ~(tile_bytes - 1));
    table = kept((base & ~window_mask) + table_half);
  }
  CANON_MEMBER u32 tile(u32 place) const {
    u32 address = first_tile + place * tile_bytes;
    if constexpr (LeafTable<Logits>::exists) {
      address += (address & window_mask) >= table_half ? table_half : 0;
      address += (address & window_mask) >= table_half + table_negative ? table_half : 0;
    }
    return address;
  }
  // Of a row, in one block.
  CANON_MEMBER u32 least_own_tiles() const { return tiles / fused_blocks; }
  CANON_MEMBER u32 most_own_tiles() const { return (tiles + fused_blocks - 1) / fused_blocks; }
  CANON_MEMBER u32 info_of(u32 buffer) const { return infos + buffer * row_info_bytes; }
  CANON_MEMBER u32 sum_of(u32 buffer, u32 tile) const { return sums + (buffer * tiles + tile) * fused_sum_bytes; }
};

// Every lane that wrote or read something arrives for itself, as in ring.h.
CANON_FN void init_fused_barriers(const FusedLayout& ring) {
  for (u32 i = 0; i < ring.places; ++i) barrier_init(ring.full + i * 8, 1);
  for (u32 i = 0; i < fused_row_buffers; ++i) {
    // By the lanes that sum the block's own tiles; of all that the cluster's blocks send the bytes are counted.
    barrier_init(ring.sums_here + i * 8, ring.most_own_tiles() * warp_lanes + (fused_blocks > 1 ? 1 : 0));
    barrier_init(ring.info_here + i * 8, warp_lanes);
    barrier_init(ring.info_done + i * 8, fused_gradient_warps * warp_lanes);
  }
  barriers_are_ready();
}

// This block's share of the work: rows `first + k * step`, some of the tiles of each. The blocks change shares from row
// to row, so that none has more to do than the others where a row's tiles cannot be dealt out evenly.
struct FusedShare {
  i64 first, step;
  i32 rows;
  u32 rank, tiles; // of a row

  CANON_MEMBER FusedShare(const GpuPlan& plan, u32 row_tiles) : tiles(row_tiles) {
    rank = fused_blocks > 1 ? cluster_rank() : 0;
    first = fused_blocks > 1 ? cluster_index() : blockIdx.x;
    step = fused_blocks > 1 ? cluster_count() : gridDim.x;
    rows = first < plan.rows ? (i32)((plan.rows - first + step - 1) / step) : 0;
  }
  CANON_MEMBER u32 part(i32 k) const { return (rank + (u32)k) % fused_blocks; }
  CANON_MEMBER i32 begin(i32 k) const { return (i32)(part(k) * tiles / fused_blocks); }
  CANON_MEMBER i32 end(i32 k) const { return (i32)((part(k) + 1) * tiles / fused_blocks); }
  CANON_MEMBER i64 row(i32 k) const { return first + k * step; }
};

// A tile of the block's part of a row, `tiles` of the block's tiles further on at each go.
struct FusedTile {
  i32 k = 0, tile, end; // row of the share; tile of the row and end of the block's part of it
  CANON_MEMBER FusedTile(const FusedShare& share, u32 first) : tile(share.begin(0)), end(share.end(0)) {
    go(share, first);
  }
  CANON_MEMBER void go(const FusedShare& share, u32 tiles) {
    tile += (i32)tiles;
    while (tile >= end) {
      tile -= end;
      ++k;
      tile += share.begin(k);
      end = share.end(k);
    }
  }
};

// Where a warp is in the ring, and the parity of that place's fill.
struct FusedPlace {
  u32 place, parity = 0;
  CANON_MEMBER explicit FusedPlace(u32 first) : place(first) {}
  // To the next of the places warp, warp + step, ...; by how many places that is.
  CANON_MEMBER u32 next_own(u32 warp, u32 step, u32 places) {
    const u32 before = place;
    place += step;
    if (place < places) return step;
    place = warp;
    parity ^= 1;
    return places + warp - before;
  }
};

} // namespace canon

#endif
