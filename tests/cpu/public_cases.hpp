// Whole calls on plain arrays, for cases that compare one call with another.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/cpu/checks.hpp"

namespace bilogp::test {

struct Scores {
  std::vector<std::uint32_t> logp; // bits
  std::vector<std::uint32_t> lse;
  std::vector<std::int32_t> state;
  friend bool operator==(const Scores&, const Scores&) = default;
};

// Rows in the memory of one storage type.
struct Rows {
  Storage storage = Storage::float32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<char> bytes;

  Rows(Storage type, std::int64_t width) : storage(type), columns(width) {}
  void add(const std::vector<std::uint32_t>& row);
  [[nodiscard]] TensorView view() const;
  [[nodiscard]] std::int64_t row_bytes() const { return columns * size_of(dtype_of(storage)); }
};

// [rows, columns] logits of any strides; ids [rows] or [rows, K].
Scores score(Runtime& runtime, const TensorView& logits, const TensorView& ids, const LogpOptions& options = {});
Scores score(Runtime& runtime, const TensorView& logits, const std::vector<std::int64_t>& ids,
             const LogpOptions& options = {});

// Bytes of the gradient, row-major; the upstream gradient is any view of [rows].
std::vector<char> gradient(Runtime& runtime, const TensorView& logits, const std::vector<std::int64_t>& ids,
                           const Scores& scores, const TensorView& upstream, const LogpOptions& options = {});

// logp of stored values in double precision.
double logp_in_double(const std::vector<std::uint32_t>& row, std::int64_t target);

} // namespace bilogp::test
