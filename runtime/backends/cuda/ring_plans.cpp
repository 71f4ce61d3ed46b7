#include "runtime/backends/cuda/ring_plans.hpp"

#include <array>

#include <fmt/format.h>

#include "runtime/backends/cuda/hopper_layout.hpp"

namespace bilogp::cuda {
namespace {

constexpr std::int64_t window_table_bytes = 1024; // of each computing warp

struct Ring {
  int warps, stage_tiles, row_buffers, finishing_warps;
  bool row_temperatures, any_address; // rows that begin at no multiple of a vector
};
// Without a table in common there is room for more warps and rows, and narrow rows want larger stages. The widest rows
// leave room for few warps.
constexpr std::array<Ring, ring_count> rings = {{{16, 4, 4, 3, false, false},
                                                 {18, 9, 7, 5, true, false},
                                                 {12, 4, 4, 3, false, true},
                                                 {15, 3, 6, 4, true, true},
                                                 {16, 8, 4, 3, false, false},
                                                 {20, 10, 4, 3, false, false},
                                                 {16, 8, 6, 4, true, false},
                                                 {12, 4, 4, 3, false, false},
                                                 {15, 3, 6, 4, true, false}}};
// Their places there.
constexpr int common_ring = 0, narrow_temperatures_ring = 1, address_ring = 2, address_temperatures_ring = 3,
              float16_ring = 4, narrow_ring = 5, wide_temperatures_ring = 6, widest_ring = 7,
              widest_temperatures_ring = 8;
constexpr std::int64_t most_narrow_tiles = 32;

std::int64_t row_tiles(const LaunchShape& shape) {
  return ceil_div(shape.vocab_size, tile_columns(shape.logits_dtype));
}

// As many stages as fit, a whole number of rounds of all computing warps; 0 if that is less than two rounds, one in
// work and one on the way.
struct RingMemory {
  std::int64_t stages, bytes;
};
RingMemory ring_memory(const LaunchShape& shape, const DeviceLimits& limits, const Ring& r) {
  const std::int64_t record = shape.logits_dtype == DType::float32 ? 8 : 33 * 4;
  const std::int64_t stage_bytes = r.stage_tiles * (tile_bytes + (r.any_address ? span_bytes : 0)),
                     round = r.warps / r.stage_tiles;
  const std::int64_t window_tables = has_table(shape) && !r.any_address ? r.warps * window_table_bytes : 0;
  const auto bytes = [&](std::int64_t stages) {
    return ring_bytes(stages, stage_bytes, has_table(shape)) + window_tables + stages * 32 +
           r.row_buffers * ((r.row_temperatures ? 64 : 40) + row_tiles(shape) * record);
  };
  std::int64_t stages = 5 * round;
  while (stages >= 2 * round && bytes(stages) > limits.shared_per_block) stages -= round;
  return stages < 2 * round ? RingMemory{0, 0} : RingMemory{stages, bytes(stages)};
}

} // namespace

std::optional<LaunchPlan> ring_plan(const LaunchShape& shape, const DeviceLimits& limits, int ring) {
  const Ring& r = rings[static_cast<std::size_t>(ring)];
  if (r.row_temperatures != shape.has_row_temperatures) return std::nullopt;
  if (!r.any_address && !reads_vectors(shape)) return std::nullopt;
  const std::int64_t tiles = row_tiles(shape);
  if (tiles > most_tiles) return std::nullopt;
  const RingMemory memory = ring_memory(shape, limits, r);
  if (memory.stages == 0) return std::nullopt;

  const std::int64_t blocks = limits.multiprocessors;
  // The rows that are left over when all blocks have had the same number are cut, so that all blocks end together.
  constexpr std::int64_t pieces = 8, own_tickets = 2;
  const std::int64_t cut = std::min({shape.rows % blocks, largest_nodes / tiles, largest_tickets - own_tickets});
  LaunchPlan plan;
  plan.grid = static_cast<unsigned>(blocks);
  plan.block = static_cast<unsigned>(r.warps + 1 + r.finishing_warps) * 32;
  plan.shared_bytes = static_cast<unsigned>(memory.bytes);
  plan.nodes = cut * tiles;
  plan.tickets = cut + own_tickets;
  plan.gpu.parameters[0] = static_cast<std::int32_t>(memory.stages);
  plan.gpu.parameters[1] = static_cast<std::int32_t>(shape.rows - cut);
  plan.gpu.parameters[2] = static_cast<std::int32_t>(std::min(pieces, tiles));
  return plan;
}

int ring_choice(const LaunchShape& shape, const DeviceLimits& limits) {
  const bool narrow = row_tiles(shape) <= most_narrow_tiles, temperatures = shape.has_row_temperatures;
  int best = common_ring;
  if (!reads_vectors(shape)) {
    best = temperatures ? address_temperatures_ring : address_ring;
  } else if (temperatures) {
    best = narrow ? narrow_temperatures_ring : wide_temperatures_ring;
  } else if (!has_table(shape)) {
    const bool is_portable = shape.numerics == Numerics::portable;
    if (narrow) best = narrow_ring;
    if (shape.logits_dtype == DType::float16 && is_portable) best = float16_ring;
  }
  for (const int ring : {best, temperatures ? widest_temperatures_ring : widest_ring})
    if (ring_plan(shape, limits, ring)) return ring;
  return -1;
}

std::vector<std::string> ring_definitions(int ring) {
  const Ring& r = rings.at(static_cast<std::size_t>(ring));
  return {fmt::format("BILOGP_WARPS={}", r.warps),
          fmt::format("BILOGP_STAGE_TILES={}", r.stage_tiles),
          fmt::format("BILOGP_ROW_BUFFERS={}", r.row_buffers),
          fmt::format("BILOGP_FINISHING_WARPS={}", r.finishing_warps),
          fmt::format("BILOGP_ROW_TEMPERATURES={}", r.row_temperatures ? 1 : 0),
          fmt::format("BILOGP_ANY_ADDRESS={}", r.any_address ? 1 : 0)};
}

} // namespace bilogp::cuda
