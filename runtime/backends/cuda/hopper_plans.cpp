#include "runtime/backends/cuda/hopper_plans.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace bilogp::cuda {
namespace {

// What templates/device/cuda/hopper lays out by hand; sizes in bytes.
constexpr std::int64_t tile_bytes = 4096, span_bytes = 128;
constexpr std::int64_t table_half = 0x4000, table_end = 0x24000; // with stages between the halves
constexpr std::int64_t vector_bytes = 16, window_table_bytes = 1024;
constexpr std::int64_t smallest_vocab = 4096;                   // below, a row is a tile or two
constexpr std::int64_t most_tiles = 256;                        // of a row, for the warps that finish rows
constexpr std::int64_t largest_columns = std::int64_t{1} << 30; // counted in 32 bits

// Persistent blocks around a ring of tiles.
struct RingVariant {
  int warps, stage_tiles, row_buffers, finishing_warps;
  bool row_temperatures, any_address; // rows that begin at no multiple of a vector
};
// Without a table in common there is room for more warps and rows, and narrow rows want larger stages.
constexpr std::array<RingVariant, 7> rings = {{{16, 4, 4, 3, false, false},
                                               {18, 9, 7, 5, true, false},
                                               {12, 4, 4, 3, false, true},
                                               {15, 3, 6, 4, true, true},
                                               {16, 8, 4, 3, false, false},
                                               {20, 10, 4, 3, false, false},
                                               {16, 8, 6, 4, true, false}}};
// Their places there.
constexpr int common_ring = 0, narrow_temperatures_ring = 1, address_ring = 2, address_temperatures_ring = 3,
              float16_ring = 4, narrow_ring = 5, wide_temperatures_ring = 6;
constexpr std::int64_t most_narrow_tiles = 32;

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

constexpr int first_ring = 1, first_few_rows = first_ring + static_cast<int>(rings.size());
constexpr int first_fused = 1;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::int64_t tile_columns(DType dtype) {
  return tile_bytes / size_of(dtype);
}

bool has_table(const LaunchShape& shape) {
  return shape.logits_dtype == DType::bfloat16 && shape.numerics == Numerics::portable && !shape.has_row_temperatures;
}

// Bytes of `stages` stages, and of the table where there is one.
std::int64_t ring_bytes(std::int64_t stages, std::int64_t stage_bytes, bool table) {
  if (!table) return stages * stage_bytes;
  const std::int64_t between = (0x20000 - table_half) / stage_bytes;
  return table_end + std::max<std::int64_t>(0, stages - between) * stage_bytes;
}

bool has_plan_size(const LaunchShape& shape) {
  return shape.vocab_size >= smallest_vocab && shape.rows < (std::int64_t{1} << 31);
}

// Every row can be read in vectors, to the end of the last one that counts.
bool reads_vectors(const LaunchShape& shape) {
  const std::int64_t size = size_of(shape.logits_dtype);
  const std::int64_t read = ceil_div(shape.vocab_size * size, vector_bytes) * vector_bytes;
  return shape.alignment >= vector_bytes && read <= shape.stored_columns * size;
}

std::optional<LaunchPlan> ring_plan(const LaunchShape& shape, const DeviceLimits& limits, const RingVariant& v,
                                    int variant) {
  if (v.row_temperatures != shape.has_row_temperatures) return std::nullopt;
  if (!v.any_address && !reads_vectors(shape)) return std::nullopt;
  const std::int64_t tiles = ceil_div(shape.vocab_size, tile_columns(shape.logits_dtype));
  if (tiles > most_tiles) return std::nullopt;
  const std::int64_t record = shape.logits_dtype == DType::float32 ? 8 : 33 * 4;
  const std::int64_t stage_bytes = v.stage_tiles * (tile_bytes + (v.any_address ? span_bytes : 0)),
                     round = v.warps / v.stage_tiles;
  const std::int64_t window_tables = has_table(shape) && !v.any_address ? v.warps * window_table_bytes : 0;
  const auto bytes = [&](std::int64_t stages) {
    return ring_bytes(stages, stage_bytes, has_table(shape)) + window_tables + stages * 32 +
           v.row_buffers * ((v.row_temperatures ? 64 : 40) + tiles * record);
  };
  std::int64_t stages = 5 * round;
  while (stages > 0 && bytes(stages) > limits.shared_per_block) stages -= round;
  if (stages < 2 * round) return std::nullopt; // one in work, one on the way

  const std::int64_t blocks = limits.multiprocessors;
  // The rows that are left over when all blocks have had the same number are cut, so that all blocks end together.
  constexpr std::int64_t pieces = 8, own_tickets = 2;
  const std::int64_t cut = std::min({shape.rows % blocks, largest_nodes / tiles, largest_tickets - own_tickets});
  LaunchPlan plan;
  plan.variant = static_cast<std::uint8_t>(variant);
  plan.grid = static_cast<unsigned>(blocks);
  plan.block = static_cast<unsigned>(v.warps + 1 + v.finishing_warps) * 32;
  plan.shared_bytes = static_cast<unsigned>(bytes(stages));
  plan.nodes = cut * tiles;
  plan.tickets = cut + own_tickets;
  plan.gpu.parameters[0] = static_cast<std::int32_t>(stages);
  plan.gpu.parameters[1] = static_cast<std::int32_t>(shape.rows - cut);
  plan.gpu.parameters[2] = static_cast<std::int32_t>(std::min(pieces, tiles));
  return plan;
}

int ring_choice(const LaunchShape& shape) {
  const bool narrow = ceil_div(shape.vocab_size, tile_columns(shape.logits_dtype)) <= most_narrow_tiles;
  if (!reads_vectors(shape)) return shape.has_row_temperatures ? address_temperatures_ring : address_ring;
  if (shape.has_row_temperatures) return narrow ? narrow_temperatures_ring : wide_temperatures_ring;
  if (has_table(shape)) return common_ring;
  if (shape.logits_dtype == DType::float16 && shape.numerics == Numerics::portable) return float16_ring;
  return narrow ? narrow_ring : common_ring;
}

std::optional<LaunchPlan> few_rows_plan(const LaunchShape& shape, const FewRowsVariant& v, int variant) {
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
  return rows <= std::int64_t{2} * limits.multiprocessors || last == 0 || 4 * last >= 3 * limits.multiprocessors;
}

// The widest cluster that still leaves every block enough to read, of which all rows' run at once.
int few_rows_choice(const LaunchShape& shape, const DeviceLimits& limits) {
  const std::int64_t row_bytes = shape.vocab_size * size_of(shape.logits_dtype);
  for (std::size_t i = 0; i < few_rows.size(); ++i) {
    const FewRowsVariant& v = few_rows[i];
    const bool enough = row_bytes / v.cluster >= 8192 || v.cluster == 1;
    if (v.cluster == 1 && !shares_evenly(shape.rows, limits)) continue;
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
  if (!has_fused_variant(shape.logits_dtype, variant)) return std::nullopt;
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
    // Without vectors few rows are better cut among many blocks.
    if (!aligned && 2 * shape.rows < limits.multiprocessors) return std::nullopt;
    forced = first_ring + ring_choice(shape);
    if (const int few = few_rows_choice(shape, limits); aligned && few != 0)
      if (std::optional<LaunchPlan> plan =
              few_rows_plan(shape, few_rows[static_cast<std::size_t>(few - first_few_rows)], few))
        return plan;
  }
  if (forced >= first_ring && forced < first_few_rows)
    return ring_plan(shape, limits, rings[static_cast<std::size_t>(forced - first_ring)], forced);
  const auto i = static_cast<std::size_t>(forced - first_few_rows);
  return i < few_rows.size() ? few_rows_plan(shape, few_rows[i], forced) : std::nullopt;
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
  if (variant < first_few_rows) {
    const RingVariant& v = rings.at(static_cast<std::size_t>(variant - first_ring));
    return {fmt::format("BILOGP_WARPS={}", v.warps),
            fmt::format("BILOGP_STAGE_TILES={}", v.stage_tiles),
            fmt::format("BILOGP_ROW_BUFFERS={}", v.row_buffers),
            fmt::format("BILOGP_FINISHING_WARPS={}", v.finishing_warps),
            fmt::format("BILOGP_ROW_TEMPERATURES={}", v.row_temperatures ? 1 : 0),
            fmt::format("BILOGP_ANY_ADDRESS={}", v.any_address ? 1 : 0)};
  }
  const FewRowsVariant& v = few_rows.at(static_cast<std::size_t>(variant - first_few_rows));
  return {fmt::format("BILOGP_WARPS={}", v.warps), fmt::format("BILOGP_CLUSTER={}", v.cluster),
          fmt::format("BILOGP_VECTORS={}", v.vectors), fmt::format("BILOGP_BLOCKS={}", v.blocks)};
}

std::vector<std::uint8_t> hopper_variants(Operator op, DType logits_dtype) {
  std::size_t count = 0;
  if (op == Operator::logp_forward) count = rings.size() + few_rows.size();
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
