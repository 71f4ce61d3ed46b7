#include "runtime/backends/cuda/hopper_plans.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

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

// Forward and gradient, a row in the shared memory of a cluster: some warps sum, the others make gradients. Of the four
// words of a vector so many are summed with leaves from the table. Places of the ring, as measured: where the
// arithmetic is quick, more of them only put more reads in the way of the writes.
struct FusedVariant {
  int cluster, warps, sum_warps, table_words, places, native_places;
};
constexpr std::array<FusedVariant, 5> fused = {{{1, 16, 8, 2, 47, 28},
                                                {2, 16, 8, 3, 32, 24},
                                                {4, 16, 8, 2, 46, 36},
                                                {8, 16, 8, 2, 40, 32},
                                                {8, 20, 8, 2, 40, 32}}};
constexpr std::int64_t fused_finishers = 4, fused_row_buffers = 16, row_info_bytes = 32, fused_sum_bytes = 8;
constexpr std::int64_t reserved_bytes = 1024; // of a block's shared memory, by the system

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

// Blocks of clusters that run at once. Clusters live inside groups of multiprocessors, whose sizes leave some over, and
// the widest ones wait for whole groups.
std::int64_t blocks_at_once(const DeviceLimits& limits, int cluster, int blocks) {
  const std::int64_t all = std::int64_t{limits.multiprocessors} * blocks;
  return cluster > 8    ? all / 2
         : cluster == 6 ? all * 3 / 4
         : cluster == 3 ? all * 7 / 8
         : cluster > 2  ? all * 10 / 11
                        : all;
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

// Twenty warps leave the other types too few registers.
constexpr bool has_fused_variant(DType dtype, int variant) {
  return dtype == DType::bfloat16 || fused[static_cast<std::size_t>(variant - first_fused)].warps <= 16;
}

// Shared memory for so many places: the small things first, then tiles, among them the halves of the table at multiples
// of their size (templates/device/cuda/hopper/fused_ring.h).
std::int64_t fused_bytes(std::int64_t places, std::int64_t tiles, bool table) {
  const std::int64_t front = places * (8 + 4) + fused_row_buffers * (row_info_bytes + 2 * 8 + tiles * fused_sum_bytes);
  std::int64_t end = (ceil_div(reserved_bytes + front, tile_bytes) + places) * tile_bytes;
  if (table && reserved_bytes + front > table_half) return std::numeric_limits<std::int64_t>::max();
  if (table) end = std::max(end, table_negative) + 2 * table_half;
  return end - reserved_bytes;
}

std::optional<LaunchPlan> fused_plan(const LaunchShape& shape, const DeviceLimits& limits, int variant) {
  const FusedVariant& v = fused.at(static_cast<std::size_t>(variant - first_fused));
  const std::int64_t columns = tile_columns(shape.logits_dtype), tiles = ceil_div(shape.vocab_size, columns);
  const bool ends_alike = ceil_div(shape.stored_columns, columns) == tiles &&
                          shape.stored_columns * size_of(shape.logits_dtype) % vector_bytes == 0;
  if (shape.has_row_temperatures || !ends_alike || tiles > most_tiles) return std::nullopt;
  if (!has_fused_variant(shape.logits_dtype, variant) || v.cluster > limits.largest_cluster) return std::nullopt;
  const std::int64_t share = ceil_div(tiles, v.cluster);
  const bool native = shape.numerics == Numerics::native;
  std::int64_t places =
      native ? std::max<std::int64_t>(v.native_places, share + 16) : std::max<std::int64_t>(v.places, share + 24);
  // Half as many rows as have buffers, so that a row's buffers are free when the next one comes to them.
  places = std::min(places, fused_row_buffers / 2 * (tiles / v.cluster));
  while (places > 0 && fused_bytes(places, tiles, has_table(shape)) > limits.shared_per_block) --places;
  // A share waits as a whole for the others' sums; beside it there must be something to do, and a place for every warp.
  if (places < std::max<std::int64_t>(share + 8, v.warps - v.sum_warps)) return std::nullopt;
  const std::int64_t most = blocks_at_once(limits, v.cluster, 1) / v.cluster;
  if (most == 0) return std::nullopt; // a slice of a card, too small for one of them
  LaunchPlan plan;
  plan.variant = static_cast<std::uint8_t>(variant);
  plan.grid = static_cast<unsigned>(std::min(most, shape.rows) * v.cluster);
  plan.cluster = static_cast<unsigned>(v.cluster);
  plan.block = static_cast<unsigned>(v.warps + fused_finishers) * 32;
  plan.shared_bytes = static_cast<unsigned>(fused_bytes(places, tiles, has_table(shape)));
  plan.gpu.parameters[0] = static_cast<std::int32_t>(places);
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

// The narrowest cluster that holds enough of a row; behind it, for few rows, wider ones.
constexpr std::array<int, 5> fused_order = {first_fused, first_fused + 1, first_fused + 4, first_fused + 2,
                                            first_fused + 3};

bool suits(const LaunchShape& shape, const FusedVariant& v, std::int64_t tiles) {
  const bool native = shape.numerics == Numerics::native;
  if (v.cluster == 1) return tiles <= 10;
  if (v.cluster == 2) return tiles <= 32;
  if (v.cluster == 4) return !native && tiles <= 80;
  return v.warps <= 16 || (!native && tiles <= 64);
}

std::optional<LaunchPlan> gradient_plan(const LaunchShape& shape, const DeviceLimits& limits, int forced) {
  if (forced != automatic_plan) {
    const int i = forced - first_fused;
    return i >= 0 && i < static_cast<int>(fused.size()) ? fused_plan(shape, limits, forced) : std::nullopt;
  }
  const std::int64_t tiles = ceil_div(shape.vocab_size, tile_columns(shape.logits_dtype));
  for (const int variant : fused_order) {
    const FusedVariant& v = fused.at(static_cast<std::size_t>(variant - first_fused));
    // Two passes with all multiprocessors are faster than one with a few of them.
    if (2 * shape.rows * v.cluster < limits.multiprocessors || !suits(shape, v, tiles)) continue;
    if (std::optional<LaunchPlan> plan = fused_plan(shape, limits, variant)) return plan;
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
    return {fmt::format("BILOGP_WARPS={}", v.warps), fmt::format("BILOGP_CLUSTER={}", v.cluster),
            fmt::format("BILOGP_SUM_WARPS={}", v.sum_warps), fmt::format("BILOGP_TABLE_WORDS={}", v.table_words),
            "BILOGP_ALIGNED_TABLE=1"};
  }
  if (spec.op == Operator::logp_backward)
    return {fmt::format("BILOGP_WARPS={}", stream_threads / 32), fmt::format("BILOGP_VECTORS={}", stream_vectors),
            fmt::format("BILOGP_BLOCKS={}", stream_blocks)};
  if (variant < first_few_rows) return ring_definitions(variant - first_ring);
  const FewRowsVariant& v = few_rows.at(static_cast<std::size_t>(variant - first_few_rows));
  return {fmt::format("BILOGP_WARPS={}", v.warps),     fmt::format("BILOGP_CLUSTER={}", v.cluster),
          fmt::format("BILOGP_VECTORS={}", v.vectors), fmt::format("BILOGP_BLOCKS={}", v.blocks),
          fmt::format("BILOGP_RING={}", v.ring),       fmt::format("BILOGP_TABLE={}", v.table)};
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
