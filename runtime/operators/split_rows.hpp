// Few rows on many threads: every row is cut into aligned blocks of columns, whose nodes are then joined, exactly as
// shards of a vocabulary are. The contract makes the cut invisible.
#pragma once

#include <cstdint>

#include "runtime/operators/launch.hpp"

namespace bilogp {

constexpr std::int64_t smallest_split_row = std::int64_t{128} * 1024; // bytes; bench/cpu/bench_threads

// Whether so few, so long rows gain from being cut.
constexpr bool worth_splitting(std::int64_t rows, std::int64_t bytes_per_row, int threads, std::int64_t ids_per_row) {
  return threads > 1 && rows < threads && bytes_per_row >= smallest_split_row && ids_per_row == 1;
}

// The kernels that a cut row of this forward takes.
constexpr Specialization partial_of(const Specialization& forward) {
  return {Operator::logp_partial, forward.logits_dtype, forward.id_dtype, 0, forward.numerics, 0};
}
constexpr Specialization finish_of(const Specialization& forward) {
  return {Operator::logp_finish, DType::float32, forward.id_dtype, 0, forward.numerics, 0};
}

void logp_by_column_blocks(Runtime& runtime, const Specialization& forward,
                           const kernel::LogpForwardArguments& arguments, std::int64_t rows, const cpu::Crew& crew,
                           std::int64_t row_offset, CallErrors& errors);

} // namespace bilogp
