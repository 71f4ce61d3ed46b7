// logp_forward, plan 2: few rows, each by the blocks of one cluster. All loads of a block are in flight at once; the
// nodes of the warps' tiles go to the cluster's first block, where one warp finishes the row. What it needs of the
// target comes from another warp: id and logit are two ways to memory, one after the other.
//
// BILOGP_CLUSTER: blocks of a cluster. BILOGP_WARPS: warps of a block that load. BILOGP_BLOCKS: blocks that shall fit a
// multiprocessor. BILOGP_VECTORS: vectors per lane and tile, a power of two; vector j of a tile is number j * 32 + lane
// of its row, so that loads of a warp are neighbours.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_LOGP_FORWARD_FEW_ROWS_H
#define BILOGP_DEVICE_CUDA_HOPPER_LOGP_FORWARD_FEW_ROWS_H

#include "device/cuda/hopper/cluster.h"
#include "device/cuda/hopper/row_answer.h"
#include "device/cuda/hopper/vector_tile.h"

namespace canon {

constexpr int cluster_blocks = BILOGP_CLUSTER, loading_warps = BILOGP_WARPS, tile_vectors = BILOGP_VECTORS;
// Where a block has room, warps of their own ask for the target and finish the row while the others load.
constexpr bool has_own_warps = (loading_warps + 2) * BILOGP_BLOCKS <= 32;
constexpr int few_rows_threads = (loading_warps + (has_own_warps ? 2 : 0)) * 32;
constexpr int finishing_warp = has_own_warps ? loading_warps : 0, asking_warp = loading_warps + 1;
constexpr int vector_tile_columns = VectorTile<tile_vectors>::columns;
constexpr i64 few_rows_tiles = (BILOGP_VOCAB + vector_tile_columns - 1) / vector_tile_columns;
// Rows that are wide enough for this plan have a constant width; without one, 256 tiles must do.
constexpr int few_rows_nodes_per_lane = BILOGP_VOCAB == 0       ? 8
                                        : few_rows_tiles <= 32  ? 1
                                        : few_rows_tiles <= 64  ? 2
                                        : few_rows_tiles <= 128 ? 4
                                        : few_rows_tiles <= 256 ? 8
                                        : few_rows_tiles <= 512 ? 16
                                                                : 32;

struct FewRowsShared {
  u64 arrived;
  u64 reserved;
  RowTarget target;
  float2 nodes[few_rows_nodes_per_lane * 32];
};

// The tree over the row's tiles, node `lane * nodes_per_lane + j` in place j of a lane.
CANON_FN Node few_rows_root(const FewRowsShared& shared, int tiles, int lane) {
  constexpr int count = few_rows_nodes_per_lane;
  float s[count];
  bool plain = true;
#pragma unroll
  for (int j = 0; j < count; ++j) {
    const int i = lane * count + j;
    const float2 node = i < tiles ? shared.nodes[i] : float2{0.0f, __int_as_float(plain_reference)};
    s[j] = node.x;
    plain = plain && __float_as_int(node.y) == plain_reference;
  }
  // The sum is made while the lanes are being asked whether it counts.
  const bool all_plain = __all_sync(all_lanes, plain);
#pragma unroll
  for (int step = 1; step < count; step *= 2)
#pragma unroll
    for (int j = 0; j < count; j += 2 * step) s[j] = s[j] + s[j + step];
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) s[0] = s[0] + __shfl_xor_sync(all_lanes, s[0], distance);
  if (all_plain && s[0] < -negative_infinity) return normalised(Node{s[0], plain_reference});
  return pair_root_of_lanes<count>(shared.nodes, tiles, lane);
}

struct FewRows {
  const LogpForwardArguments& a;
  const GpuPlan& plan;
  FewRowsShared& shared;
  const u32 arrived, rank; // the barrier for nodes and target; the block in its cluster
  const i64 row;
  const int vocab, tiles, lane;

  CANON_MEMBER const Stored* logits() const {
    return (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides);
  }
  CANON_MEMBER static void wait_for_barrier() {
    if (cluster_blocks > 1)
      cluster_wait();
    else
      __syncthreads();
  }

  // The barrier is there before anything is sent to it. Every thread comes here first: loads that are on the way would
  // be waited for.
  CANON_MEMBER void make_barrier() const {
    if (rank == 0 && threadIdx.x == finishing_warp * 32) {
      constexpr u32 targets = has_own_warps ? 1 : 0;
      barrier_init(arrived, (cluster_blocks > 1 ? 1 : (u32)tiles) + targets);
      barriers_are_ready();
      if (cluster_blocks > 1) barrier_expect(arrived, (u32)tiles * 8);
    }
    if (cluster_blocks > 1) cluster_arrive_relaxed();
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
    const int begin = (int)rank * tiles / cluster_blocks, end = (int)(rank + 1) * tiles / cluster_blocks;
    int tile = begin + warp;
    VectorTile<tile_vectors> next;
    const Stored* from = logits() + VectorTile<tile_vectors>::column(tile, lane);
    int rest = vocab - VectorTile<tile_vectors>::column(tile, lane);
    if (tile < end) next.load_from(from, rest);
    const PlainWindow window = plain_window<Logits>(row_scale(row, a.options).c, 1.0f);
    const u32 nodes = shared_address(shared.nodes);
    const u32 there = cluster_blocks > 1 ? address_in_block(nodes, 0) : nodes;
    const u32 there_arrived = cluster_blocks > 1 ? address_in_block(arrived, 0) : arrived;
    bool together = cluster_blocks == 1;
    if (together) wait_for_barrier();
#pragma unroll 1
    for (; tile < end; tile += loading_warps) {
      const VectorTile<tile_vectors> current = next;
      const Stored* const current_from = from;
      from += loading_warps * vector_tile_columns;
      rest -= loading_warps * vector_tile_columns;
      if (tile + loading_warps < end) next.load_from(from, rest);
      const Node node = current.sum(current_from, rest + loading_warps * vector_tile_columns, lane, window);
      if (!together) wait_for_barrier();
      together = true;
      send(tile, node, there, there_arrived);
    }
    if (!together) wait_for_barrier();
  }

  CANON_MEMBER RowTarget target(const RowPlace& at) const {
    const Stored* logits = (const Stored*)a.logits + row_offset(at, a.options, a.logits_strides);
    return row_target(a, row_ids(a, at), logits, vocab, row_scale(at, a.options));
  }
  CANON_MEMBER void ask() const {
    const RowTarget t = target(row_place(row, a.options));
    wait_for_barrier();
    if (lane != 0) return;
    shared.target = t;
    barrier_arrive(arrived);
  }

  CANON_MEMBER void finish() const {
    const RowPlace at = row_place(row, a.options);
    const Scale scale = row_scale(at, a.options);
    const TargetId* ids = row_ids(a, at);
    const u64 place = answer_place(a, at);
    RowTarget t;
    if constexpr (has_own_warps)
      wait_for_barrier();
    else
      t = target(at);
    barrier_wait(arrived, 0);
    if constexpr (has_own_warps) t = shared.target;
    if (!t.is_ordinary && t.id == a.options.ignore_index && all_ignored(a, ids)) return write_ignored_row(a, at);
    const Node sum = scale.valid ? few_rows_root(shared, tiles, lane) : poison_node();
    answer_row(a, at, plan.first_row + row, ids, logits(), vocab, sum, scale, t, place);
  }

  CANON_MEMBER void run(int warp) const {
    make_barrier();
    if (warp < loading_warps) sum_tiles(warp);
    if (!has_own_warps || warp < loading_warps) {
      if (has_own_warps || warp != finishing_warp || rank != 0) return;
    } else if (rank != 0) {
      return wait_for_barrier();
    } else if (warp == asking_warp) {
      return ask();
    }
    finish();
  }
};

CANON_FN void forward_few_rows(const LogpForwardArguments& a, const GpuPlan& plan) {
  __shared__ __align__(128) FewRowsShared shared;
  const int vocab = (int)vocab_size_of(a.options);
  const u32 rank = cluster_blocks > 1 ? cluster_rank() : 0;
  FewRows{a,
          plan,
          shared,
          shared_address(&shared.arrived),
          rank,
          (i64)(blockIdx.x / cluster_blocks),
          vocab,
          (vocab + vector_tile_columns - 1) / vector_tile_columns,
          lane_of_warp()}
      .run(warp_of_block());
}

} // namespace canon

#endif
