// The rows to score: logits [..., V] and target ids [...] or [..., K] of a file, seen as N rows.
//
// Thread-safety: may be read from any thread. It points into the mappings of Inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bilogp/tensor.hpp"
#include "runtime/score/inputs.hpp"

namespace bilogp::score {

class RowSet {
public:
  // Throws Error(invalid_argument) for a rank, shape or dtype that cannot be scored. Only the first `limit_rows` rows
  // count; -1: all.
  RowSet(const Inputs& inputs, std::int64_t limit_rows);

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t columns() const { return logits_.shape.back(); }
  [[nodiscard]] std::int64_t ids_per_row() const { return ids_per_row_; }
  [[nodiscard]] bool has_id_dimension() const { return target_ids_.shape.size() == logits_.shape.size(); }
  [[nodiscard]] DType dtype() const { return *logits_.dtype; }
  [[nodiscard]] DType id_dtype() const { return *target_ids_.dtype; }
  [[nodiscard]] std::int64_t row_bytes() const { return columns() * size_of(dtype()); }
  // Of the logits, as in the file; with a limit on the rows, [rows, columns].
  [[nodiscard]] const std::vector<std::int64_t>& shape() const { return shape_; }

  [[nodiscard]] std::span<const std::byte> logits(std::int64_t first_row, std::int64_t rows) const;
  [[nodiscard]] std::int64_t target_id(std::int64_t row, std::int64_t k) const;
  // The ids of some rows, copied to aligned memory.
  [[nodiscard]] std::vector<std::byte> copy_ids(std::int64_t first_row, std::int64_t rows) const;

  // What the row belongs to: its sequence id, else its index in all leading dimensions but the last, else 0.
  [[nodiscard]] std::int64_t sequence(std::int64_t row) const;

  // Throws Error(out_of_range) for a target id outside [0, used columns) that is not ignore_index, naming its row in
  // the whole file.
  void check_ids(std::int64_t vocab_size, std::int64_t ignore_index) const;

private:
  FileTensor logits_;
  FileTensor target_ids_;
  std::optional<FileTensor> sequence_ids_;
  std::vector<std::int64_t> shape_;
  std::int64_t rows_ = 0;
  std::int64_t ids_per_row_ = 1;
};

} // namespace bilogp::score
