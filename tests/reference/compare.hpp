// Compares arrays of float bits and says readably where they differ: bit for bit, without any tolerance.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "tests/reference/canon_reference.hpp"

namespace bilogp::reference {

// any_payload: two NaNs are equal, for gradients whose upstream gradient is NaN or infinite.
enum class NanRule : std::uint8_t { exact_bits, any_payload };

struct BitDifference {
  std::size_t count = 0; // elements that differ
  std::size_t first = 0; // index of the first one
  std::string report;    // empty when nothing differs
  [[nodiscard]] bool none() const { return count == 0 && report.empty(); }
};

namespace detail {

template<typename Bits> std::string describe_bits(Storage storage, Bits bits) {
  const float value = std::bit_cast<float>(widen(storage, &bits));
  return fmt::format("0x{:0{}x} ({:.9g})", bits, 2 * sizeof(Bits), value);
}

inline bool is_nan(std::uint32_t binary32) {
  return (binary32 & 0x7fffffffU) > 0x7f800000U;
}

} // namespace detail

// Bits is std::uint32_t for float32, std::uint16_t for the 16-bit types. Rows of `row_length` elements are reported as
// row and column; up to `shown` differences are listed.
template<typename Bits>
BitDifference compare_bits(Storage storage, std::span<const Bits> got, std::span<const Bits> expected,
                           std::size_t row_length = 1, NanRule nan_rule = NanRule::exact_bits, std::size_t shown = 4) {
  static_assert(std::is_same_v<Bits, std::uint32_t> || std::is_same_v<Bits, std::uint16_t>);
  BitDifference result;
  if (got.size() != expected.size()) {
    result.report = fmt::format("{} elements, expected {}", got.size(), expected.size());
    result.count = std::max(got.size(), expected.size());
    return result;
  }
  std::string lines;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i]) continue;
    if (nan_rule == NanRule::any_payload && detail::is_nan(widen(storage, &got[i])) &&
        detail::is_nan(widen(storage, &expected[i])))
      continue;
    if (result.count++ == 0) result.first = i;
    if (result.count > shown) continue;
    lines += fmt::format("\n  row {}, column {}: got {}, expected {}", i / row_length, i % row_length,
                         detail::describe_bits(storage, got[i]), detail::describe_bits(storage, expected[i]));
  }
  if (result.count != 0) result.report = fmt::format("{} of {} differ:{}", result.count, got.size(), lines);
  return result;
}

// Binary32 results.
inline BitDifference compare_bits(std::span<const std::uint32_t> got, std::span<const std::uint32_t> expected,
                                  std::size_t row_length = 1, NanRule nan_rule = NanRule::exact_bits) {
  return compare_bits<std::uint32_t>(Storage::float32, got, expected, row_length, nan_rule);
}

inline std::string to_string(const Node& node) {
  return fmt::format("(m {}, E {})", detail::describe_bits(Storage::float32, node.m_bits), node.E);
}

} // namespace bilogp::reference
