#include "runtime/backends/cuda/hopper_plans.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/backends/cuda/fused_plans.hpp"
#include "runtime/backends/cuda/hopper_layout.hpp"
#include "runtime/backends/cuda/ring_plans.hpp"

namespace bilogp::cuda {
namespace {

constexpr std::int64_t smallest_vocab = 4096;                   // below, a row is a tile or two
constexpr std::int64_t largest_columns = std::int64_t{1} << 30; // counted in 32 bits

// A cluster per row. Blocks: that fit a multiprocessor. Ring: tiles of each warp on their way to shared memory, or 0.
// Table: words of a vector whose leaves come from a table.
struct FewRowsVariant {
  int cluster, warps, vectors, blocks, ring, table;
};
constexpr std::array<FewRowsVariant, 10> few_rows = {{{16, 8, 4, 2, 1, 0},
                                                      {8, 16, 4, 1, 1, 2},
                                                      {6, 21, 4, 1, 1, 2},
                                                      {4, 16, 4, 1, 2, 2},
                                                      {8, 8, 4, 2, 2, 0},
                                                      {3, 24, 4, 1, 2, 2},
                                                      {2, 16, 4, 1, 4, 2},
                                                      {2, 12, 4, 2, 0, 0},
                                                      {1, 16, 4, 2, 0, 0},
                                                      {1, 8, 4, 4, 0, 0}}};
constexpr std::int64_t block_leaves_bytes = 32768, most_nodes_bytes = 9216; // beside the ring

// Whether there is room for the warps that finish the row and ask for its target.
constexpr int own_warps(const FewRowsVariant& v) {
  return (v.warps + 2) * v.blocks <= 32 ? 2 : 0;
}

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
  const std::int64_t ring = std::int64_t{v.warps} * v.ring * v.vectors * 32 * vector_bytes;
  if (ring + (v.table > 0 ? block_leaves_bytes : 0) + most_nodes_bytes > limits.shared_per_block) return std::nullopt;
  LaunchPlan plan;
  plan.variant = static_cast<std::uint8_t>(variant);
  plan.shared_bytes = static_cast<unsigned>(ring);
  plan.grid = static_cast<unsigned>(shape.rows * v.cluster);
  plan.cluster = static_cast<unsigned>(v.cluster);
  plan.block = static_cast<unsigned>(v.warps + own_warps(v)) * 32;
  return plan;
}

// Whether rows of one block each keep the multiprocessors busy to the end.
bool shares_evenly(std::int64_t rows, const DeviceLimits& limits) {
  const std::int64_t last = rows % limits.multiprocessors;
  return rows <= std::int64_t{2} * limits.multiprocessors || last == 0 ||
         4 * last >= std::int64_t{3} * limits.multiprocessors;
}

// The first one that leaves every block enough to read, a table's enough to be worth it, and of which all rows' blocks
// run at once.
std::optional<LaunchPlan> few_rows_choice(const LaunchShape& shape, const DeviceLimits& limits) {
  const std::int64_t row_bytes = shape.vocab_size * size_of(shape.logits_dtype);
  for (std::size_t i = 0; i < few_rows.size(); ++i) {
    const FewRowsVariant& v = few_rows[i];
    const bool enough = row_bytes / v.cluster >= (v.table > 0 ? 24576 : 8192) || v.cluster == 1;
    if (!enough || (v.cluster == 1 && !shares_evenly(shape.rows, limits))) continue;
    if (shape.rows * v.cluster > blocks_at_once(limits, v.cluster, v.blocks)) continue;
    if (std::optional<LaunchPlan> plan = few_rows_plan(shape, limits, v, first_few_rows + static_cast<int>(i)))
      return plan;
  }
  return std::nullopt;
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
    if (std::optional<LaunchPlan> plan = few_rows_choice(shape, limits)) return plan;
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
  std::optional<LaunchPlan> plan =
      forced == automatic_plan ? fused_choice(shape, limits) : fused_plan(shape, limits, forced - first_fused);
  if (plan) plan->variant = static_cast<std::uint8_t>(plan->variant + first_fused);
  return plan;
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
  if (spec.op == Operator::logp_with_gradient) return fused_definitions(variant - first_fused);
  if (spec.op == Operator::logp_backward)
    return {fmt::format("BILOGP_WARPS={}", stream_threads / 32), fmt::format("BILOGP_VECTORS={}", stream_vectors),
            fmt::format("BILOGP_BLOCKS={}", stream_blocks)};
  if (variant < first_few_rows) return ring_definitions(variant - first_ring);
  const FewRowsVariant& v = few_rows.at(static_cast<std::size_t>(variant - first_few_rows));
  return {fmt::format("BILOGP_WARPS={}", v.warps),     fmt::format("BILOGP_CLUSTER={}", v.cluster),
          fmt::format("BILOGP_VECTORS={}", v.vectors), fmt::format("BILOGP_BLOCKS={}", v.blocks),
          fmt::format("BILOGP_RING={}", v.ring),       fmt::format("BILOGP_TABLE={}", v.table)};
}

std::vector<std::uint8_t> hopper_variants(Operator op) {
  std::size_t count = 0;
  if (op == Operator::logp_forward) count = ring_count + few_rows.size();
  if (op == Operator::logp_with_gradient) count = fused_count;
  if (op == Operator::logp_backward) count = 1;
  std::vector<std::uint8_t> variants;
  for (std::size_t i = 1; i <= count; ++i) variants.push_back(static_cast<std::uint8_t>(i));
  return variants;
}

} // namespace bilogp::cuda
