// Few rows: the two warps that do not load. One asks for the target; the other adds the row's nodes up and answers.
//
// The answer is all that comes behind the last tile, so the finishing warp has its part ready before: what hangs on
// the lane alone, and the instructions themselves, which it runs once on an example.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_FEW_ROWS_FINISHER_H
#define BILOGP_DEVICE_CUDA_HOPPER_FEW_ROWS_FINISHER_H

#include "device/cuda/hopper/row_answer.h"
#include "device/cuda/hopper/vector_tile.h"

namespace canon {

constexpr int cluster_blocks = BILOGP_CLUSTER, tile_vectors = BILOGP_VECTORS;
constexpr int loading_warps = BILOGP_WARPS;
// Where a block has room, warps of their own ask for the target and finish the row while the others load.
constexpr bool has_own_warps = (loading_warps + 2) * BILOGP_BLOCKS <= 32;
constexpr int vector_tile_columns = VectorTile<tile_vectors>::columns;
constexpr i64 few_rows_tiles = (BILOGP_VOCAB + vector_tile_columns - 1) / vector_tile_columns;
// Rows that are wide enough for this plan have a constant width; without one, 256 tiles must do.
constexpr int few_rows_nodes_per_lane = BILOGP_VOCAB == 0       ? 8
                                        : few_rows_tiles <= 64  ? 2
                                        : few_rows_tiles <= 128 ? 4
                                        : few_rows_tiles <= 256 ? 8
                                        : few_rows_tiles <= 512 ? 16
                                                                : 32;

struct FewRowsTarget {
  i64 id;
  float p; // the leaf's value, times 2^n
  i32 n;
  float logit;
  u32 is_ordinary; // as in RowTarget
};

struct FewRowsShared {
  u64 arrived, asked; // barriers: for the nodes, and for the target
  FewRowsTarget target;
  alignas(16) float2 example[few_rows_nodes_per_lane]; // read by vectors, as the nodes
  alignas(16) float2 nodes[few_rows_nodes_per_lane * 32];
};

__device__ const LogPieces log_pieces_of_lanes = all_log_pieces();

// The tree over nodes `lane * nodes_per_lane + j`, from `address` on of each lane, as long as all are plain.
struct FewRowsSum {
  float s;
  bool counts; // all nodes are plain, and their sum is finite
};
CANON_FN FewRowsSum few_rows_sum(u32 address) {
  constexpr int count = few_rows_nodes_per_lane;
  float s[count];
  u32 others = 0;
#pragma unroll
  for (int j = 0; j < count; j += 2) {
    const Vector two = load_shared_vector(address + (u32)j * 8);
    s[j] = float_from_bits(two.word[0]);
    s[j + 1] = float_from_bits(two.word[2]);
    others |= (two.word[1] ^ (u32)plain_reference) | (two.word[3] ^ (u32)plain_reference);
  }
  const bool all_plain = __all_sync(all_lanes, others == 0);
#pragma unroll
  for (int step = 1; step < count; step *= 2)
#pragma unroll
    for (int j = 0; j < count; j += 2 * step) s[j] = s[j] + s[j + step];
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) s[0] = s[0] + __shfl_xor_sync(all_lanes, s[0], distance);
  return FewRowsSum{s[0], all_plain && s[0] < -negative_infinity};
}

// Nodes behind the row are zeros; the example is a row of ones.
CANON_FN void prepare_few_rows(FewRowsShared& shared, int tiles, int lane) {
  constexpr int count = few_rows_nodes_per_lane;
  const float plain = __int_as_float(plain_reference);
  for (int i = tiles + lane; i < count * 32; i += 32) shared.nodes[i] = float2{0.0f, plain};
  if (lane < count) shared.example[lane] = float2{1.0f, plain};
  __syncwarp();
}

CANON_FN Node few_rows_root(const FewRowsShared& shared, const FewRowsSum& sum, int tiles, int lane) {
  if (sum.counts) return normalised(Node{sum.s, plain_reference});
  return pair_root_of_lanes<few_rows_nodes_per_lane>(shared.nodes, tiles, lane);
}

CANON_FN u32 nodes_of_lane(const FewRowsShared& shared, int lane) {
  return shared_address(shared.nodes) + (u32)(lane * few_rows_nodes_per_lane * 8);
}

// By a warp of its own. The same instructions three times, so that they are at hand when the last nodes come: for the
// example, for the logarithm of the target's leaf, and for the row.
CANON_FN void finish_few_rows(const LogpForwardArguments& a, FewRowsShared& shared, u32 arrived, u32 asked, i64 row,
                              i64 row_number, const Stored* logits, i64 vocab, int tiles, int lane) {
  const LogPiece piece = log_pieces_of_lanes.at[lane];
  prepare_few_rows(shared, tiles, lane);
  const RowPlace at = row_place(row, a.options);
  const u64 place = answer_place(a, at);
  double sign = 1.0, rest = 0.0;
  i32 n = 0;
  bool is_ordinary = true, found = false;
  u32 nodes = shared_address(shared.example);
  FewRowsSum sum = {};
#pragma unroll 1
  for (int turn = 0; turn < 3; ++turn) {
    float s;
    if (turn == 1) {
      barrier_watch(asked, 0);
      s = shared.target.p;
    } else {
      if (turn == 2) barrier_watch(arrived, 0);
      sum = few_rows_sum(nodes);
      s = sum.s;
    }
    const u32 bits = bits_from_float(s);
    const float m = float_from_bits((bits & 0x007fffffu) | 0x3f800000u);
    const i32 E = (i32)(bits >> 23) - 127 + (turn == 1 ? 0 : plain_reference);
    const i32 exponent = turn == 2 && lane == 0 ? n - E : E;
    const int from = log_piece_of(m);
    const LogPiece of_m = {__shfl_sync(all_lanes, piece.inverse, from), __shfl_sync(all_lanes, piece.log, from)};
    const double close = close_result(exponent, rest, sign, m, of_m);
    float value;
    const bool one = one_rounding(close, exponent, value);
    found = __all_sync(all_lanes, one && is_ordinary && sum.counts && s > 0.0f);
    const bool counts = turn == 2 && found && place != 0;
    store_if(counts, place, bits_from_float(lane == 2 ? m : value));
    store_if(counts && lane == 2, place + 4, (u32)E);
    if (turn == 1) {
      sign = lane == 0 ? -1.0 : 1.0;
      rest = lane == 0 ? close : 0.0;
      n = shared.target.n;
      is_ordinary = shared.target.is_ordinary != 0;
      nodes = nodes_of_lane(shared, lane);
    }
  }
  if (found) return;
  // Seldom, or several targets: by the definition.
  const FewRowsTarget& t = shared.target;
  const TargetId* ids = row_ids(a, at);
  if (t.is_ordinary == 0 && t.id == a.options.ignore_index && all_ignored(a, ids)) return write_ignored_row(a, at);
  const Scale scale = row_scale(at, a.options);
  const Node root = scale.valid ? few_rows_root(shared, sum, tiles, lane) : poison_node();
  write_answers(a, at, row_number, ids, vocab, root, scale,
                [&](i64 k, i64 id) { return k == 0 ? t.logit : Logits::widen(load(logits + id)); });
}

// By one of the warps that load, once they have: nothing is there before.
CANON_FN void finish_few_rows_alone(const LogpForwardArguments& a, FewRowsShared& shared, u32 arrived, i64 row,
                                    i64 row_number, i64 vocab, int tiles, int lane) {
  const RowPlace at = row_place(row, a.options);
  const Stored* logits = (const Stored*)a.logits + row_offset(at, a.options, a.logits_strides);
  const Scale scale = row_scale(at, a.options);
  const TargetId* ids = row_ids(a, at);
  const u64 place = answer_place(a, at);
  const RowTarget t = row_target(a, ids, logits, vocab, scale);
  prepare_few_rows(shared, tiles, lane);
  barrier_wait(arrived, 0);
  if (!t.is_ordinary && t.id == a.options.ignore_index && all_ignored(a, ids)) return write_ignored_row(a, at);
  Node root = poison_node();
  if (scale.valid) root = few_rows_root(shared, few_rows_sum(nodes_of_lane(shared, lane)), tiles, lane);
  answer_row(a, at, row_number, ids, logits, vocab, root, scale, t, place);
}

} // namespace canon

#endif
