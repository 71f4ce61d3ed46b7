#include "runtime/score/bit_differences.hpp"

#include <bit>

#include <fmt/format.h>

namespace bilogp::score {

void BitDifferences::begin_row(std::int64_t row) {
  row_ = row;
  row_differs_ = false;
  ++rows_compared;
}

void BitDifferences::compare(const char* field, std::uint32_t here, std::uint32_t there, std::int64_t index, int bits) {
  bits_compared += bits;
  if (here == there) return;
  bits_different += std::popcount(here ^ there);
  // One example for a row: its first word that differs.
  if (!row_differs_ && first.size() < most_examples)
    first.push_back({row_, index < 0 ? field : fmt::format("{}[{}]", field, index), here, there});
  if (!row_differs_) ++rows_different;
  row_differs_ = true;
}

void BitDifferences::append(const BitDifferences& part) {
  bits_compared += part.bits_compared;
  bits_different += part.bits_different;
  rows_compared += part.rows_compared;
  rows_different += part.rows_different;
  for (const DifferentRow& row : part.first)
    if (first.size() < most_examples) first.push_back(row);
}

} // namespace bilogp::score
