#include "runtime/backends/cuda/plans.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "runtime/backends/cuda/hopper_plans.hpp"
#include "runtime/backends/cuda/targets.hpp"

namespace bilogp::cuda {
namespace {

constexpr std::int64_t warp_threads = 32;
constexpr int plain_warps = 8;
// Bytes of a row that a block of the plain backward writes: a tile per warp.
constexpr std::int64_t backward_block_bytes = 16384;
// Bytes of a row below which a part is not worth a block: joining the parts costs more than reading them.
constexpr std::int64_t smallest_part_bytes = 4096;
constexpr std::int64_t largest_grid = 0x7fffffff;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// The largest power of two that still gives every multiprocessor something to do.
std::int64_t part_columns(const LaunchShape& shape, const DeviceLimits& limits) {
  const std::int64_t wanted = 2 * static_cast<std::int64_t>(limits.multiprocessors);
  std::int64_t part = smallest_part_bytes / size_of(shape.logits_dtype);
  while (part < shape.columns && shape.rows * ceil_div(shape.columns, 2 * part) >= wanted) part *= 2;
  return part;
}

bool scratch_suffices(const LaunchShape& shape, std::int64_t parts) {
  return shape.rows <= largest_tickets && shape.rows * parts <= largest_nodes;
}

LaunchPlan with_grid(LaunchPlan plan, std::int64_t blocks) {
  plan.grid = static_cast<unsigned>(std::min(blocks, largest_grid));
  return plan;
}

LaunchPlan plain(const LaunchShape& shape) {
  LaunchPlan plan;
  plan.block = plain_warps * warp_threads;
  plan.gpu.blocks_per_row = 1;
  plan.gpu.columns_per_block = 0;
  if (shape.op == Operator::logp_backward) {
    const std::int64_t part = backward_block_bytes / size_of(shape.logits_dtype);
    plan.gpu.columns_per_block = static_cast<std::int32_t>(part);
    plan.gpu.blocks_per_row = static_cast<std::int32_t>(ceil_div(shape.columns, part));
  }
  if (shape.op == Operator::logp_finish) return with_grid(plan, ceil_div(shape.rows, plain_warps)); // a warp per row
  return with_grid(plan, shape.rows * plan.gpu.blocks_per_row);
}

std::optional<LaunchPlan> plain_split(const LaunchShape& shape, const DeviceLimits& limits) {
  if (shape.op != Operator::logp_forward) return std::nullopt;
  const std::int64_t part = part_columns(shape, limits);
  const std::int64_t parts = ceil_div(shape.columns, part);
  if (parts < 2 || !scratch_suffices(shape, parts)) return std::nullopt;
  LaunchPlan plan;
  plan.block = plain_warps * warp_threads;
  plan.gpu.blocks_per_row = static_cast<std::int32_t>(parts);
  plan.gpu.columns_per_block = static_cast<std::int32_t>(part);
  plan.nodes = shape.rows * parts;
  plan.tickets = shape.rows;
  return with_grid(plan, shape.rows * parts);
}

std::optional<LaunchPlan> forced_plan(const LaunchShape& shape, const DeviceLimits& limits, int forced) {
  if (forced == plain_rows) return plain(shape);
  if (forced == plain_split_rows) return plain_split(shape, limits);
  if (forced > first_hopper_plan && limits.has_clusters) return hopper_plan(shape, limits, forced - first_hopper_plan);
  return std::nullopt;
}

} // namespace

LaunchPlan plan_launch(const LaunchShape& shape, const DeviceLimits& limits, int forced) {
  if (forced != automatic_plan)
    if (const std::optional<LaunchPlan> plan = forced_plan(shape, limits, forced)) return *plan;
  if (limits.has_clusters)
    if (const std::optional<LaunchPlan> plan = hopper_plan(shape, limits, automatic_plan)) return *plan;
  const bool few_rows = shape.rows < limits.multiprocessors;
  if (few_rows)
    if (const std::optional<LaunchPlan> plan = plain_split(shape, limits)) return *plan;
  return plain(shape);
}

bool splits_passes(const LaunchShape& shape, const DeviceLimits& limits) {
  if (shape.op != Operator::logp_with_gradient || 2 * shape.rows > limits.multiprocessors) return false;
  LaunchShape forward = shape;
  forward.op = Operator::logp_forward;
  return plan_launch(shape, limits, automatic_plan).variant == 0 && plain_split(forward, limits).has_value();
}

bool plan_serves(const LaunchShape& shape, const DeviceLimits& limits, int forced) {
  return forced_plan(shape, limits, forced).has_value();
}

std::vector<std::string> plan_definitions(const Specialization& spec, int capability) {
  if (spec.variant != 0 && has_hopper_plans(capability)) return hopper_definitions(spec);
  return {fmt::format("BILOGP_WARPS={}", plain_warps)};
}

std::vector<std::uint8_t> variants_of(Operator op, int capability) {
  std::vector<std::uint8_t> variants = {0};
  if (has_hopper_plans(capability))
    for (const std::uint8_t variant : hopper_variants(op)) variants.push_back(variant);
  return variants;
}

} // namespace bilogp::cuda
