// Turns the definitions that a kernel is specialized with into types and constants:
//   BILOGP_LOGITS   Float32, Float16 or Bfloat16
//   BILOGP_ID       i32 or i64
//   BILOGP_VOCAB    columns that count, or 0 for a run-time value
#ifndef BILOGP_ROWS_SPECIALIZATION_H
#define BILOGP_ROWS_SPECIALIZATION_H

#include "rows/device.h"

namespace canon {

typedef BILOGP_LOGITS Logits;
typedef Logits::Stored Stored;
typedef BILOGP_ID TargetId;

CANON_FN i64 vocab_size_of(const RowOptions& options) {
  return BILOGP_VOCAB > 0 ? (i64)BILOGP_VOCAB : options.vocab_size;
}

// Where a row is: one division serves all tensors of a call.
struct RowPlace {
  i64 outer, inner;
};
CANON_FN RowPlace row_place(i64 row, const RowOptions& options) {
  if (row < options.inner_rows) return RowPlace{0, row};
  const i64 outer = row / options.inner_rows;
  return RowPlace{outer, row - outer * options.inner_rows};
}

// Offset of row `row` in a tensor with these strides; `row` is its number or its place.
CANON_FN i64 row_offset(const RowPlace& row, const RowOptions&, const RowStrides& strides) {
  return row.outer * strides.outer + row.inner * strides.inner;
}
CANON_COLD i64 row_offset_by_division(i64 row, i64 inner_rows, RowStrides strides) {
  const i64 outer = row / inner_rows;
  return outer * strides.outer + (row - outer * inner_rows) * strides.inner;
}
CANON_FN i64 row_offset(i64 row, const RowOptions& options, const RowStrides& strides) {
  if (row < options.inner_rows) return row * strides.inner;
  return row_offset_by_division(row, options.inner_rows, strides);
}

template<class Row> CANON_FN float row_temperature(const Row& row, const RowOptions& options) {
  if (options.temperature_rows == nullptr) return options.temperature;
  return load(options.temperature_rows + row_offset(row, options, options.temperature_strides));
}
template<class Row> CANON_FN Scale row_scale(const Row& row, const RowOptions& options) {
  return scale_of(row_temperature(row, options));
}

} // namespace canon

#endif
