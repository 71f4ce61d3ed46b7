// The point of the product, shown on given rows: the same bits however they are scored.
//
// Thread-safety: one call at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bilogp/runtime.hpp"
#include "runtime/score/row_set.hpp"

namespace bilogp::score {

constexpr int most_threads_checked = 16;

struct InvarianceCheck {
  std::string name; // "in batches of 7"
  std::int64_t bits = 0;
  std::int64_t bits_different = 0;
  double seconds = 0;
};

// Rows whose plain float32 logp differs between two ways to add, or from bilogp's.
struct PlainSumDifferences {
  std::int64_t rows = 0; // those with a finite answer
  std::int64_t simple_against_8 = 0;
  std::int64_t partial_8_against_16 = 0;
  std::int64_t simple_against_bilogp = 0;
};

struct InvarianceReport {
  std::int64_t rows = 0; // the first ones of the file, as many as 64 MiB hold
  std::vector<InvarianceCheck> checks;
  PlainSumDifferences plain;
  [[nodiscard]] bool all_equal() const;
};

// Of the first target id of each row. Throws Error.
InvarianceReport check_invariance(Runtime& runtime, const RowSet& rows, const LogpOptions& options);

} // namespace bilogp::score
