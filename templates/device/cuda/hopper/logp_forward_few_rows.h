// logp_forward, plan 2: few rows, each by the blocks of one cluster. All loads of a block are in flight at once, or as
// many as its ring holds; the nodes of the warps' tiles go to the cluster's first block, where one warp finishes the
// row. What it needs of the target comes from another warp: id and logit are two ways to memory, one after the other.
//
// BILOGP_CLUSTER: blocks of a cluster. BILOGP_WARPS: warps of a block that load. BILOGP_BLOCKS: blocks that shall fit a
// multiprocessor. BILOGP_VECTORS: vectors per lane and tile, a power of two; vector j of a tile is number j * 32 + lane
// of its row, so that loads of a warp are neighbours. BILOGP_RING: tiles that a warp has on their way to shared memory;
// 0: one, to its registers. BILOGP_TABLE: words of a vector that come from a table of leaves, which is made while the
// first loads are on their way.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_LOGP_FORWARD_FEW_ROWS_H
#define BILOGP_DEVICE_CUDA_HOPPER_LOGP_FORWARD_FEW_ROWS_H

#include "device/cuda/hopper/cluster.h"
#include "device/cuda/hopper/few_rows_finisher.h"
#include "device/cuda/hopper/vector_tile.h"

namespace canon {

constexpr int few_rows_threads = (loading_warps + (has_own_warps ? 2 : 0)) * 32;
constexpr int finishing_warp = has_own_warps ? loading_warps : 0, asking_warp = loading_warps + 1;
constexpr int ring_tiles = BILOGP_RING, ring_tile_bytes = tile_vectors * 512;
constexpr int table_words = LeafTable<Logits>::exists ? BILOGP_TABLE : 0;
constexpr u32 block_barrier_name = 1, loaders_barrier_name = 2;

struct FewRows {
  const LogpForwardArguments& a;
  const GpuPlan& plan;
  FewRowsShared& shared;
  const u32 arrived, asked, rank; // the barriers; the block in its cluster
  const u32 leaves, ring;         // the table; this lane's place in the first tile of its warp's ring
  const i64 row;
  const int vocab, tiles, lane;

  CANON_MEMBER const Stored* logits() const {
    return (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides);
  }
  // The barrier is there, in all blocks of the cluster.
  CANON_MEMBER static void wait_for_barrier() {
    if (cluster_blocks > 1)
      cluster_wait();
    else
      block_barrier_wait(block_barrier_name, few_rows_threads);
  }

  // By the finishing warp of the first block, before it comes to the block's or the cluster's own barrier.
  CANON_MEMBER void make_barrier() const {
    if (rank != 0 || lane != 0) return;
    barrier_init(arrived, cluster_blocks > 1 ? 1 : (u32)tiles);
    if (has_own_warps) barrier_init(asked, 1);
    barriers_are_ready();
    if (cluster_blocks > 1) barrier_expect(arrived, (u32)tiles * 8);
  }

  CANON_MEMBER void send(int tile, Node node, u32 there, u32 there_arrived) const {
    if (lane != 0) return;
    if (cluster_blocks > 1) {
      send_pair(there + (u32)tile * 8, there_arrived, bits_from_float(node.m), (u32)node.E);
    } else {
      shared.nodes[tile] = float2{node.m, __int_as_float(node.E)};
      barrier_arrive(arrived);
    }
  }

  CANON_MEMBER void sum_tiles(int warp) const {
    typedef VectorTile<tile_vectors> Tile;
    constexpr int stride = loading_warps * vector_tile_columns; // from one tile of a warp to its next
    const int begin = (int)(rank * (u32)tiles / cluster_blocks), end = (int)((rank + 1) * (u32)tiles / cluster_blocks);
    int tile = begin + warp;
    const Stored* from = logits() + Tile::column(tile, lane);
    int rest = vocab - Tile::column(tile, lane);
    Tile next;
    if (ring_tiles == 0) {
      if (tile < end) next.load_from(from, rest);
    } else {
#pragma unroll
      for (int i = 0; i < ring_tiles; ++i) {
        if (tile + i * loading_warps < end)
          Tile::copy_to(ring + (u32)(i * ring_tile_bytes), from + i * stride, rest - i * stride);
        close_group_of_vectors();
      }
    }
    if (!has_own_warps && warp == finishing_warp) make_barrier();
    warp_barrier();
    if (cluster_blocks > 1) cluster_arrive_relaxed();
    const float temperature = row_temperature(row, a.options), c = scale_of(temperature).c;
    const PlainWindow window = plain_window<Logits>(c, table_words > 0 ? temperature : 1.0f);
    u32 table = leaves;
    if (table_words > 0) {
      build_block_leaves(table, c, temperature, threadIdx.x, loading_warps * 32);
      block_barrier_wait(loaders_barrier_name, loading_warps * 32);
      asm volatile("" : "+r"(table)); // what is read of the table is read behind the barrier
    }
    wait_for_barrier();
    const u32 nodes = shared_address(shared.nodes);
    const u32 there = cluster_blocks > 1 ? address_in_block(nodes, 0) : nodes;
    const u32 there_arrived = cluster_blocks > 1 ? address_in_block(arrived, 0) : arrived;
    u32 slot = ring;
#pragma unroll 1
    for (; tile < end; tile += loading_warps) {
      const Stored* const here = from;
      const int live = rest;
      from += stride;
      rest -= stride;
      if (ring_tiles > 0) {
        wait_for_vectors<ring_tiles == 0 ? 0 : ring_tiles - 1>();
        next.load_from_slot(slot);
        if (tile + ring_tiles * loading_warps < end)
          Tile::copy_to(slot, here + ring_tiles * stride, live - ring_tiles * stride);
        close_group_of_vectors();
        slot = slot == ring + (ring_tiles - 1) * ring_tile_bytes ? ring : slot + ring_tile_bytes;
      }
      const Tile current = next;
      if (ring_tiles == 0 && tile + loading_warps < end) next.load_from(from, rest);
      send(tile, current.template sum<table_words>(here, live, lane, table, window), there, there_arrived);
    }
  }

  CANON_MEMBER void ask() const {
    const RowPlace at = row_place(row, a.options);
    const Scale scale = row_scale(at, a.options); // before the id is on its way: a call would wait for it
    const i64 id = (i64)load(row_ids(a, at));
    const float logit = Logits::widen(load(logits() + (id >= 0 && id < vocab ? id : 0)));
    const RowTarget t = target_of(a, id, logit, vocab, scale); // its logarithm is the finishing warp's affair
    float p;
    i32 n;
    leaf_pair<float>(logit, scale, p, n);
    if (cluster_blocks > 1) wait_for_barrier();
    if (lane != 0) return;
    shared.target = FewRowsTarget{t.id, p, t.n, t.logit, t.is_ordinary ? 1u : 0u};
    barrier_arrive(asked);
  }

  CANON_MEMBER void run(int warp) const {
    if (!has_own_warps || warp < loading_warps) {
      sum_tiles(warp);
      if (!has_own_warps && warp == finishing_warp && rank == 0) {
        // Asked again: registers are short while the warp loads.
        const i64 same_row = (i64)(number_of_block() / cluster_blocks);
        finish_few_rows_alone(a, shared, arrived, same_row, plan.first_row + same_row, vocab, tiles, lane);
      }
      return;
    }
    if (warp == finishing_warp) make_barrier();
    warp_barrier(); // a cluster's barrier is for whole warps
    if (cluster_blocks > 1) cluster_arrive_relaxed();
    if (rank != 0) return wait_for_barrier();
    if (cluster_blocks == 1) wait_for_barrier();
    if (warp == asking_warp) return ask();
    if (cluster_blocks > 1) wait_for_barrier();
    finish_few_rows(a, shared, arrived, asked, row, plan.first_row + row, logits(), vocab, tiles, lane);
  }
};

CANON_FN void forward_few_rows(const LogpForwardArguments& a, const GpuPlan& plan) {
  __shared__ __align__(128) FewRowsShared shared;
  __shared__ __align__(128) u32 leaves[table_words > 0 ? block_leaves : 4];
  extern __shared__ __align__(128) unsigned char rings[];
  const int vocab = (int)vocab_size_of(a.options), warp = (int)(threadIdx.x / 32), lane = (int)(threadIdx.x % 32);
  const u32 rank = cluster_blocks > 1 ? cluster_rank() : 0;
  FewRows{a,
          plan,
          shared,
          shared_address(&shared.arrived),
          shared_address(&shared.asked),
          rank,
          table_words > 0 ? shared_address(leaves) : 0,
          ring_tiles > 0 ? shared_address(rings) + (u32)(warp * ring_tiles * ring_tile_bytes + lane * 16) : 0,
          (i64)(blockIdx.x / cluster_blocks),
          vocab,
          (vocab + vector_tile_columns - 1) / vector_tile_columns,
          lane}
      .run(warp);
}

} // namespace canon

#endif
