#include "runtime/backends/cuda/hopper_plans.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/backends/cuda/hopper_layout.hpp"
#include "runtime/backends/cuda/ring_plans.hpp"

namespace bilogp::cuda {
namespace {

constexpr std::int64_t smallest_vocab = 4096;                   // below, a row is a tile or two
constexpr std::int64_t largest_columns = std::int64_t{1} << 30; // counted in 32 bits

// A cluster per row.
struct FewRowsVariant {
  int cluster, warps, vectors, blocks; // blocks that fit a multiprocessor
};
constexpr std::array<FewRowsVariant, 8> few_rows = {{{16, 8, 4, 1},
                                                     {8, 16, 4, 1},
                                                     {8, 8, 4, 2},
                                                     {3, 24, 4, 1},
                                                     {2, 16, 4, 1},
                                                     {2, 12, 4, 2},
                                                     {1, 16, 4, 2},
                                                     {1, 8, 4, 4}}};

// Whether there is room for the warps that finish the row and ask for its target.
constexpr int own_warps(const FewRowsVariant& v) {
  return (v.warps + 2) * v.blocks <= 32 ? 2 : 0;
}

// Forward and gradient, a row in the shared memory of a cluster.
struct FusedVariant {
  int cluster, warps;
};
constexpr std::array<FusedVariant, 4> fused = {{{1, 16}, {2, 16}, {4, 16}, {8, 16}}};
constexpr int fused_finishers = 2, fused_stage_tiles = 2;
constexpr std::int64_t row_info_bytes = 48;

// A vector or more per thread, straight through.
constexpr int stream_threads = 128, stream_vectors = 2, stream_turns = 3, stream_blocks = 9, stream_variant = 1;

constexpr int first_ring = 1, first_few_rows = first_ring + ring_count;
constexpr int first_fused = 1;

// These plans ask for a row's first id without a look at how many there are.
bool has_plan_size(const LaunchShape& shape) {
  return shape.vocab_size >= smallest_vocab && shape.rows < (std::int64_t{1} << 31) && shape.ids_per_row > 0;
}

std::optional<LaunchPlan> few_rows_plan(const LaunchShape& shape, const DeviceLimits& limits, const FewRowsVariant& v,
                                        int variant) {
  if (v.cluster > limits.largest_cluster) return std::nullopt;
  const std::int64_t tile = std::int64_t{32} * v.vectors * vector_bytes / size_of(shape.logits_dtype);
  if (!reads_vectors(shape) || ceil_div(shape.vocab_size, tile) > 1024 || shape.rows * v.cluster > 65535)
    return std::nullopt;
  LaunchPlan plan;
  plan.variant = static_cast<std::uint8_t>(variant);
  plan.grid = static_cast<unsigned>(shape.rows * v.cluster);
  plan.cluster = static_cast<unsigned>(v.cluster);
  plan.block = static_cast<unsigned>(v.warps + own_warps(v)) * 32;
  return plan;
}

// Blocks of clusters that run at once. Clusters live inside groups of multiprocessors, whose sizes leave some over, and
// the widest ones wait for whole groups.
std::int64_t blocks_at_once(const DeviceLimits& limits, int cluster, int blocks) {
  const std::int64_t all = std::int64_t{limits.multiprocessors} * blocks;
  return cluster > 8 ? all / 2 : cluster == 3 ? all * 7 / 8 : cluster > 2 ? all * 10 / 11 : all;
}

// Whether rows of one block each keep the multiprocessors busy to the end.
bool shares_evenly(std::int64_t rows, const DeviceLimits& limits) {
  const std::int64_t last = rows % limits.multiprocessors;
  return rows <= std::int64_t{2} * limits.multiprocessors || last == 0 ||
         4 * last >= std::int64_t{3} * limits.multiprocessors;
}

// The widest cluster that still leaves every block enough to read, of which all rows' run at once.
int few_rows_choice(const LaunchShape& shape, const DeviceLimits& limits) {
  const std::int64_t row_bytes = shape.vocab_size * size_of(shape.logits_dtype);
  for (std::size_t i = 0; i < few_rows.size(); ++i) {
    const FewRowsVariant& v = few_rows[i];
    const bool enough = row_bytes / v.cluster >= 8192 || v.cluster == 1;
    if (v.cluster > limits.largest_cluster || (v.cluster == 1 && !shares_evenly(shape.rows, limits))) continue;
    if (enough && shape.rows * v.cluster <= blocks_at_once(limits, v.cluster, v.blocks))
      return first_few_rows + static_cast<int>(i);
  }
  return 0;
}

// A float32 row that one block holds is narrow, and its kernel would not fit the registers.
constexpr bool has_fused_variant(DType dtype, int variant) {
  return dtype != DType::float32 || variant != first_fused;
}

std::optional<LaunchPlan> fused_plan(const LaunchShape& shape, const DeviceLimits& limits, const FusedVariant& v,
                                     int variant) {
  const std::int64_t columns = tile_columns(shape.logits_dtype), tiles = ceil_div(shape.vocab_size, columns);
  const bool ends_alike = ceil_div(shape.stored_columns, columns) == tiles &&
                          shape.stored_columns * size_of(shape.logits_dtype) % vector_bytes == 0;
  if (shape.has_row_temperatures || !ends_alike || tiles > most_tiles) return std::nullopt;
  if (!has_fused_variant(shape.logits_dtype, variant) || v.cluster > limits.largest_cluster) return std::nullopt;
  // Warps are one step ahead with their sums: a share of a row that is much longer would wait for itself.
  if (ceil_div(tiles, v.cluster) > v.warps + 8) return std::nullopt;
  const std::int64_t stage_bytes = fused_stage_tiles * tile_bytes, row_buffers = v.cluster == 8 ? 16 : 8;
  const auto bytes = [&](std::int64_t stages) {
    return ring_bytes(stages, stage_bytes, has_table(shape)) + stages * 16 +
           row_buffers * (tiles * 16 + row_info_bytes + 4 + 16);
  };
  // More than twice the rows that the ring holds, so that sums of a row never meet those of one that is still read.
  const std::int64_t ring_rows = (row_buffers - 1) / 2;
  std::int64_t stages = std::min<std::int64_t>(32, ring_rows * (tiles / v.cluster) / fused_stage_tiles);
  while (stages > 0 && bytes(stages) > limits.shared_per_block) --stages;
  // Two steps of all warps must fit, beside places that the last stage of a row may leave empty.
  const std::int64_t places = stages * fused_stage_tiles;
  if (places == 0 || places - (places / (tiles / v.cluster) + 1) < std::int64_t{2} * v.warps) return std::nullopt;
  LaunchPlan plan;
  plan.variant = static_cast<std::uint8_t>(variant);
  const std::int64_t most = blocks_at_once(limits, v.cluster, 1) / v.cluster;
  plan.grid = static_cast<unsigned>(std::min(most, shape.rows) * v.cluster);
  plan.cluster = static_cast<unsigned>(v.cluster);
  plan.block = static_cast<unsigned>(v.warps + 1 + fused_finishers) * 32;
  plan.shared_bytes = static_cast<unsigned>(bytes(stages));
  plan.gpu.parameters[0] = static_cast<std::int32_t>(stages);
  return plan;
}

std::optional<LaunchPlan> backward_plan(const LaunchShape& shape, int forced) {
  if (forced != automatic_plan && forced != stream_variant) return std::nullopt;
  const std::int64_t columns =
      std::int64_t{stream_turns} * stream_threads * stream_vectors * vector_bytes / size_of(shape.logits_dtype);
  const std::int64_t parts = ceil_div(shape.columns, columns);
  if (shape.columns > largest_columns || shape.alignment < vector_bytes || shape.rows > 0x7fffffff / parts)
    return std::nullopt;
  LaunchPlan plan;
  plan.variant = stream_variant;
  plan.grid = static_cast<unsigned>(shape.rows * parts);
  plan.block = stream_threads;
  plan.gpu.blocks_per_row = static_cast<std::int32_t>(parts);
  plan.gpu.columns_per_block = static_cast<std::int32_t>(columns);
  return plan;
}

std::optional<LaunchPlan> forward_plan(const LaunchShape& shape, const DeviceLimits& limits, int forced) {
  if (forced == automatic_plan) {
    const bool aligned = reads_vectors(shape);
    // Without vectors, or clusters worth the name, few rows are better cut among many blocks.
    const bool shares_rows = aligned && limits.largest_cluster > 2;
    if (!shares_rows && 2 * shape.rows < limits.multiprocessors) return std::nullopt;
    forced = first_ring + ring_choice(shape, limits);
    if (const int few = few_rows_choice(shape, limits); aligned && few != 0)
      if (std::optional<LaunchPlan> plan =
              few_rows_plan(shape, limits, few_rows[static_cast<std::size_t>(few - first_few_rows)], few))
        return plan;
  }
  if (forced >= first_ring && forced < first_few_rows) {
    std::optional<LaunchPlan> plan = ring_plan(shape, limits, forced - first_ring);
    if (plan) plan->variant = static_cast<std::uint8_t>(forced);
    return plan;
  }
  if (forced < first_few_rows) return std::nullopt;
  const auto i = static_cast<std::size_t>(forced - first_few_rows);
  return i < few_rows.size() ? few_rows_plan(shape, limits, few_rows[i], forced) : std::nullopt;
}

std::optional<LaunchPlan> gradient_plan(const LaunchShape& shape, const DeviceLimits& limits, int forced) {
  if (forced != automatic_plan) {
    const auto i = static_cast<std::size_t>(forced - first_fused);
    return i < fused.size() ? fused_plan(shape, limits, fused[i], forced) : std::nullopt;
  }
  const std::int64_t tiles = ceil_div(shape.vocab_size, tile_columns(shape.logits_dtype));
  for (const int cluster : {1, 2, 4, 8}) {
    // Two passes with all multiprocessors are faster than one with a few of them.
    if (2 * shape.rows * cluster < limits.multiprocessors) continue;
    const bool is_narrow = ceil_div(tiles, cluster) <= 16 && shape.numerics == Numerics::portable;
    if (cluster == 4 && !is_narrow && 8 * shape.rows >= limits.multiprocessors) continue;
    for (std::size_t i = 0; i < fused.size(); ++i) {
      if (fused[i].cluster != cluster) continue;
      std::optional<LaunchPlan> plan = fused_plan(shape, limits, fused[i], first_fused + static_cast<int>(i));
      if (plan) return plan;
    }
  }
  return std::nullopt;
}

} // namespace

std::optional<LaunchPlan> hopper_plan(const LaunchShape& shape, const DeviceLimits& limits, int forced) {
  if (shape.op == Operator::logp_backward) return backward_plan(shape, forced);
  if (!has_plan_size(shape)) return std::nullopt;
  if (shape.op == Operator::logp_forward) return forward_plan(shape, limits, forced);
  if (shape.op == Operator::logp_with_gradient && reads_vectors(shape)) return gradient_plan(shape, limits, forced);
  return std::nullopt;
}

std::vector<std::string> hopper_definitions(const Specialization& spec) {
  const int variant = spec.variant;
  if (spec.op == Operator::logp_with_gradient) {
    const FusedVariant& v = fused.at(static_cast<std::size_t>(variant - first_fused));
    return {fmt::format("BILOGP_WARPS={}", v.warps), fmt::format("BILOGP_CLUSTER={}", v.cluster)};
  }
  if (spec.op == Operator::logp_backward)
    return {fmt::format("BILOGP_WARPS={}", stream_threads / 32), fmt::format("BILOGP_VECTORS={}", stream_vectors),
            fmt::format("BILOGP_BLOCKS={}", stream_blocks)};
  if (variant < first_few_rows) return ring_definitions(variant - first_ring);
  const FewRowsVariant& v = few_rows.at(static_cast<std::size_t>(variant - first_few_rows));
  return {fmt::format("BILOGP_WARPS={}", v.warps), fmt::format("BILOGP_CLUSTER={}", v.cluster),
          fmt::format("BILOGP_VECTORS={}", v.vectors), fmt::format("BILOGP_BLOCKS={}", v.blocks)};
}

std::vector<std::uint8_t> hopper_variants(Operator op, DType logits_dtype) {
  std::size_t count = 0;
  if (op == Operator::logp_forward) count = ring_count + few_rows.size();
  if (op == Operator::logp_with_gradient) count = fused.size();
  if (op == Operator::logp_backward) count = 1;
  std::vector<std::uint8_t> variants;
  for (std::size_t i = 1; i <= count; ++i) {
    if (op == Operator::logp_with_gradient && !has_fused_variant(logits_dtype, static_cast<int>(i))) continue;
    variants.push_back(static_cast<std::uint8_t>(i));
  }
  return variants;
}

} // namespace bilogp::cuda
