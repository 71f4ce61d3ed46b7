// logp_forward, plan 2: few rows, each by the blocks of one cluster. All loads of a block are in flight at once; the
// nodes of the warps' tiles go to the cluster's first block, where one warp finishes the row.
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
// A warp of its own asks for the target while the others load, where a block has room for it.
constexpr bool has_finishing_warp = (loading_warps + 1) * BILOGP_BLOCKS <= 32;
constexpr int few_rows_threads = (loading_warps + (has_finishing_warp ? 1 : 0)) * 32;
constexpr int finishing_warp = has_finishing_warp ? loading_warps : 0;
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
  float2 nodes[few_rows_nodes_per_lane * 32];
};

// The tree over the row's tiles, node `lane * nodes_per_lane + j` in place j of a lane.
CANON_FN Node few_rows_root(const FewRowsShared& shared, int tiles, int lane) {
  constexpr int count = few_rows_nodes_per_lane;
  Node t[count];
  bool plain = true;
#pragma unroll
  for (int j = 0; j < count; ++j) {
    const int i = lane * count + j;
    const float2 node = i < tiles ? shared.nodes[i] : float2{0.0f, __int_as_float(plain_reference)};
    t[j] = Node{node.x, __float_as_int(node.y)};
    plain = plain && t[j].E == plain_reference;
  }
  if (__all_sync(all_lanes, plain)) {
#pragma unroll
    for (int step = 1; step < count; step *= 2)
#pragma unroll
      for (int j = 0; j < count; j += 2 * step) t[j].m = t[j].m + t[j + step].m;
    float s = t[0].m;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) s = s + __shfl_xor_sync(all_lanes, s, distance);
    if (s < -negative_infinity) return normalised(Node{s, plain_reference});
  }
  return pair_root_of_lanes<count>(shared.nodes, tiles, lane);
}

CANON_FN void forward_few_rows(const LogpForwardArguments& a, const GpuPlan& plan) {
  __shared__ __align__(128) FewRowsShared shared;
  const int warp = warp_of_block(), lane = lane_of_warp();
  const u32 rank = cluster_blocks > 1 ? cluster_rank() : 0;
  const i64 row = blockIdx.x / cluster_blocks;
  const int vocab = (int)vocab_size_of(a.options);
  const Stored* const row_logits = (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides);
  const Stored* logits = row_logits;
  const int tiles = (vocab + vector_tile_columns - 1) / vector_tile_columns;
  const int begin = (int)rank * tiles / cluster_blocks, end = (int)(rank + 1) * tiles / cluster_blocks;
  int tile = warp < loading_warps ? begin + warp : end;
  VectorTile<tile_vectors> next;
  logits += VectorTile<tile_vectors>::column(tile, lane);
  int rest = vocab - VectorTile<tile_vectors>::column(tile, lane);
  if (tile < end) next.load_from(logits, rest);
  const u32 arrived = shared_address(&shared.arrived), nodes = shared_address(shared.nodes);
  if (rank == 0 && threadIdx.x == 0) {
    barrier_init(arrived, cluster_blocks > 1 ? 1 : (u32)tiles);
    barriers_are_ready();
    if (cluster_blocks > 1) barrier_expect(arrived, (u32)tiles * 8);
  }
  if (cluster_blocks > 1) cluster_arrive_relaxed();
  const bool finishes = rank == 0 && warp == finishing_warp;
  RowTarget target = {};
  if (has_finishing_warp && finishes)
    target = row_target(a, row_ids(a, row), row_logits, vocab, row_scale(row, a.options));
  const PlainWindow window = plain_window<Logits>(row_scale(row, a.options).c, 1.0f);
  if (cluster_blocks == 1) __syncthreads();
  bool together = cluster_blocks == 1;
  const u32 there = cluster_blocks > 1 ? address_in_block(nodes, 0) : nodes;
  const u32 there_arrived = cluster_blocks > 1 ? address_in_block(arrived, 0) : arrived;
#pragma unroll 1
  for (; tile < end; tile += loading_warps) {
    const VectorTile<tile_vectors> current = next;
    const Stored* const from = logits;
    logits += loading_warps * vector_tile_columns;
    rest -= loading_warps * vector_tile_columns;
    if (tile + loading_warps < end) next.load_from(logits, rest);
    const Node node = current.sum(from, rest + loading_warps * vector_tile_columns, lane, window);
    if (!together) cluster_wait();
    together = true;
    if (lane == 0) {
      if (cluster_blocks > 1) {
        send_pair(there + tile * 8, there_arrived, bits_from_float(node.m), (u32)node.E);
      } else {
        shared.nodes[tile] = float2{node.m, __int_as_float(node.E)};
        barrier_arrive(arrived);
      }
    }
  }
  if (!together) cluster_wait();
  if (!finishes) return;
  const Scale scale = row_scale(row, a.options);
  const TargetId* ids = row_ids(a, row);
  logits = (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides);
  if (!has_finishing_warp) target = row_target(a, ids, logits, vocab, scale);
  barrier_wait(arrived, 0);
  if (target.id == a.options.ignore_index && all_ignored(a, ids)) return write_ignored_row(a, row);
  const Node sum = scale.valid ? few_rows_root(shared, tiles, lane) : poison_node();
  answer_row(a, row, plan.first_row + row, ids, logits, vocab, sum, scale, target);
}

} // namespace canon

#endif
