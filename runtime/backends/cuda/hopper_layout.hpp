// What templates/device/cuda/hopper lays out by hand in shared memory, for the plans that make room for it. Sizes in
// bytes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/backends/cuda/plans.hpp"

namespace bilogp::cuda {

constexpr std::int64_t tile_bytes = 4096, span_bytes = 128, vector_bytes = 16;
constexpr std::int64_t table_half = 0x4000, table_negative = 0x20000, table_end = table_negative + table_half;
constexpr std::int64_t most_tiles = 256; // of a row, for the warps that finish rows

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

inline std::int64_t tile_columns(DType dtype) {
  return tile_bytes / size_of(dtype);
}

// Of exact leaves.
inline bool has_table(const LaunchShape& shape) {
  return shape.logits_dtype == DType::bfloat16 && shape.numerics == Numerics::portable && !shape.has_row_temperatures;
}

// Bytes of `stages` stages, and of the table where there is one.
inline std::int64_t ring_bytes(std::int64_t stages, std::int64_t stage_bytes, bool table) {
  if (!table) return stages * stage_bytes;
  const std::int64_t between = (table_negative - table_half) / stage_bytes;
  return table_end + std::max<std::int64_t>(0, stages - between) * stage_bytes;
}

// Every row can be read in vectors, to the end of the last one that counts.
inline bool reads_vectors(const LaunchShape& shape) {
  const std::int64_t size = size_of(shape.logits_dtype);
  const std::int64_t read = ceil_div(shape.vocab_size * size, vector_bytes) * vector_bytes;
  return shape.alignment >= vector_bytes && read <= shape.stored_columns * size;
}

// Blocks of clusters that run at once. Clusters live inside groups of multiprocessors, whose sizes leave some over, and
// the widest ones wait for whole groups. Of those as many as share no multiprocessor: seven of sixteen blocks on 132.
inline std::int64_t blocks_at_once(const DeviceLimits& limits, int cluster, int blocks) {
  const std::int64_t all = std::int64_t{limits.multiprocessors} * blocks;
  return cluster > 8    ? std::int64_t{limits.multiprocessors} * 6 / 7
         : cluster == 6 ? all * 3 / 4
         : cluster == 3 ? all * 7 / 8
         : cluster > 2  ? all * 10 / 11
                        : all;
}

} // namespace bilogp::cuda
