#include "runtime/backends/cuda/fused_plans.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "runtime/backends/cuda/hopper_layout.hpp"

namespace bilogp::cuda {
namespace {

// Forward and gradient, a row in the shared memory of a cluster: some warps sum, the others make gradients. Of the four
// words of a vector so many are summed with leaves from the table. Places of the ring, as measured for 32768, 128256
// and 151936 columns: where the arithmetic is quick, more of them only put more reads in the way of the writes. The
// last is for rows so wide that there is no room for the sums of sixteen.
struct FusedVariant {
  int cluster, warps, sum_warps, table_words, row_buffers, places, native_places;
};
constexpr std::array<FusedVariant, fused_count> fused = {{{1, 16, 8, 2, 16, 40, 40},
                                                          {2, 16, 8, 3, 16, 32, 24},
                                                          {4, 16, 8, 2, 8, 40, 36},
                                                          {8, 16, 8, 2, 16, 40, 36},
                                                          {8, 16, 8, 2, 8, 40, 36}}};
constexpr std::int64_t fused_finishers = 4, row_info_bytes = 32, fused_sum_bytes = 8;
constexpr std::int64_t reserved_bytes = 1024; // of a block's shared memory, by the system

// Shared memory for so many places: the small things first (a barrier and a word for each place, three barriers beside
// the info and the sums of each row), then tiles, among them the halves of the table at multiples of their size
// (templates/device/cuda/hopper/fused_ring.h).
std::int64_t fused_bytes(std::int64_t places, std::int64_t tiles, int row_buffers, bool table) {
  const std::int64_t front = places * 12 + row_buffers * (row_info_bytes + 24 + tiles * fused_sum_bytes);
  std::int64_t end = (ceil_div(reserved_bytes + front, tile_bytes) + places) * tile_bytes;
  if (table && reserved_bytes + front > table_half) return std::numeric_limits<std::int64_t>::max();
  if (table) end = std::max(end, table_negative) + 2 * table_half;
  return end - reserved_bytes;
}

// A share of a row waits as a whole for the others' sums; what is beside it keeps memory busy. Each warp that makes
// gradients has places of its own, where nothing was measured as many as the others.
std::int64_t places_wanted(const FusedVariant& v, std::int64_t share, bool native) {
  const int warps = v.warps - v.sum_warps;
  const std::int64_t least = native ? share + 16 : std::max(share + 24, 5 * share / 2);
  const std::int64_t usual = native ? v.native_places : v.places;
  return usual >= least ? usual : ceil_div(least, warps) * warps;
}

std::optional<LaunchPlan> plan_of(const LaunchShape& shape, const DeviceLimits& limits, int number) {
  const FusedVariant& v = fused.at(static_cast<std::size_t>(number));
  const std::int64_t columns = tile_columns(shape.logits_dtype), tiles = ceil_div(shape.vocab_size, columns);
  const bool ends_alike = ceil_div(shape.stored_columns, columns) == tiles &&
                          shape.stored_columns * size_of(shape.logits_dtype) % vector_bytes == 0;
  if (shape.has_row_temperatures || !ends_alike || tiles > most_tiles) return std::nullopt;
  if (v.cluster > limits.largest_cluster) return std::nullopt;
  const std::int64_t share = ceil_div(tiles, v.cluster);
  std::int64_t places = places_wanted(v, share, shape.numerics == Numerics::native);
  // Half as many rows as have buffers, so that a row's buffers are free when the next one comes to them.
  places = std::min(places, v.row_buffers / 2 * (tiles / v.cluster));
  while (places > 0 && fused_bytes(places, tiles, v.row_buffers, has_table(shape)) > limits.shared_per_block) --places;
  // A share waits as a whole for the others' sums; beside it there must be something to do, and a place for every warp.
  if (places < std::max<std::int64_t>(share + 8, v.warps - v.sum_warps)) return std::nullopt;
  const std::int64_t most = blocks_at_once(limits, v.cluster, 1) / v.cluster;
  if (most == 0) return std::nullopt; // a slice of a card, too small for one of them
  LaunchPlan plan;
  plan.variant = static_cast<std::uint8_t>(number);
  plan.grid = static_cast<unsigned>(std::min(most, shape.rows) * v.cluster);
  plan.cluster = static_cast<unsigned>(v.cluster);
  plan.fills_device = v.cluster > 1;
  plan.block = static_cast<unsigned>(v.warps + fused_finishers) * 32;
  plan.shared_bytes = static_cast<unsigned>(fused_bytes(places, tiles, v.row_buffers, has_table(shape)));
  plan.gpu.parameters[0] = static_cast<std::int32_t>(places);
  return plan;
}

// Whether a cluster holds enough of a row, and more would only be more exchange.
bool suits(const LaunchShape& shape, const FusedVariant& v, std::int64_t tiles) {
  if (v.cluster == 1) return tiles <= 16;
  if (v.cluster == 2) return tiles <= 32;
  return v.cluster == 8 || (shape.numerics == Numerics::portable && tiles <= 80);
}

} // namespace

std::optional<LaunchPlan> fused_plan(const LaunchShape& shape, const DeviceLimits& limits, int number) {
  return number >= 0 && number < fused_count ? plan_of(shape, limits, number) : std::nullopt;
}

std::optional<LaunchPlan> fused_choice(const LaunchShape& shape, const DeviceLimits& limits) {
  const std::int64_t tiles = ceil_div(shape.vocab_size, tile_columns(shape.logits_dtype));
  for (int number = 0; number < fused_count; ++number) { // behind the narrowest, for few rows, wider ones
    const FusedVariant& v = fused.at(static_cast<std::size_t>(number));
    // Two passes with all multiprocessors are faster than one with a few of them.
    if (2 * shape.rows * v.cluster < limits.multiprocessors || !suits(shape, v, tiles)) continue;
    if (std::optional<LaunchPlan> plan = plan_of(shape, limits, number)) return plan;
  }
  return std::nullopt;
}

std::vector<std::string> fused_definitions(int number) {
  const FusedVariant& v = fused.at(static_cast<std::size_t>(number));
  return {fmt::format("BILOGP_WARPS={}", v.warps),
          fmt::format("BILOGP_CLUSTER={}", v.cluster),
          fmt::format("BILOGP_SUM_WARPS={}", v.sum_warps),
          fmt::format("BILOGP_TABLE_WORDS={}", v.table_words),
          fmt::format("BILOGP_ROW_BUFFERS={}", v.row_buffers),
          "BILOGP_ALIGNED_TABLE=1"};
}

} // namespace bilogp::cuda
