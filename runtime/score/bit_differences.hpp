// Counts differing bits between results and what they should be, and remembers the first rows that differ.
//
// Thread-safety: none; one owner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bilogp::score {

struct DifferentRow {
  std::int64_t row = 0;
  std::string field; // "logp", "grad_logits[17]"
  std::uint32_t here = 0;
  std::uint32_t there = 0;
};

struct BitDifferences {
  static constexpr std::size_t most_examples = 8;

  std::int64_t bits_compared = 0;
  std::int64_t bits_different = 0;
  std::int64_t rows_compared = 0;
  std::int64_t rows_different = 0;
  std::vector<std::string> fields; // what was compared: "logp", "lse"
  std::vector<DifferentRow> first;

  // Starts a row: the words compared from here on belong to it.
  void begin_row(std::int64_t row);
  // `index` is shown behind the field's name unless negative. Words have 32 bits, or 16.
  void compare(const char* field, std::uint32_t here, std::uint32_t there, std::int64_t index = -1, int bits = 32);
  // Joins a part that was counted elsewhere, of later rows.
  void append(const BitDifferences& part);

private:
  std::int64_t row_ = 0;
  bool row_differs_ = false;
};

} // namespace bilogp::score
