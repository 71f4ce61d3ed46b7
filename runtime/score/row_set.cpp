#include "runtime/score/row_set.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "bilogp/error.hpp"

namespace bilogp::score {
namespace {

template<typename... Args> [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::invalid_argument, fmt::format(text, std::forward<Args>(args)...));
}

constexpr std::int64_t max_columns = std::int64_t{1} << 31;

bool is_float(std::optional<DType> dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

bool is_integer(std::optional<DType> dtype) {
  return dtype == DType::int32 || dtype == DType::int64;
}

std::int64_t integer_at(const FileTensor& tensor, std::int64_t index) {
  const bool wide = tensor.dtype == DType::int64;
  const std::byte* const at = tensor.bytes.data() + index * (wide ? 8 : 4);
  std::int64_t value64 = 0;
  std::int32_t value32 = 0;
  if (wide)
    std::memcpy(&value64, at, sizeof(value64));
  else
    std::memcpy(&value32, at, sizeof(value32));
  return wide ? value64 : value32;
}

} // namespace

RowSet::RowSet(const Inputs& inputs, std::int64_t limit_rows)
    : logits_(inputs.logits), target_ids_(inputs.target_ids), sequence_ids_(inputs.sequence_ids),
      shape_(logits_.shape) {
  if (!is_float(logits_.dtype))
    refuse("the logits {} are {}, expected float32, float16 or bfloat16", in_quotes(logits_.name), logits_.dtype_name);
  if (!is_integer(target_ids_.dtype))
    refuse("the target ids {} are {}, expected int32 or int64", in_quotes(target_ids_.name), target_ids_.dtype_name);
  const std::size_t rank = logits_.shape.size();
  if (rank < 2)
    refuse("the logits {} have the shape {}, expected [..., V] of two dimensions or more", in_quotes(logits_.name),
           shape_text(logits_.shape));
  if (columns() == 0 || columns() > max_columns)
    refuse("the logits {} have the shape {}, expected 1 to 2^31 columns", in_quotes(logits_.name),
           shape_text(logits_.shape));
  const std::span leading(logits_.shape.data(), rank - 1);
  const auto& ids = target_ids_.shape;
  if (ids.size() < leading.size() || ids.size() > rank || !std::equal(leading.begin(), leading.end(), ids.begin()))
    refuse("the target ids {} have the shape {}, expected {} to go with logits {}, or that with one more dimension for "
           "several ids a row",
           in_quotes(target_ids_.name), shape_text(ids), shape_text(leading), shape_text(logits_.shape));
  if (ids.size() == rank) ids_per_row_ = ids.back();
  if (ids_per_row_ == 0) refuse("the target ids {} have no id for any row", in_quotes(target_ids_.name));
  if (sequence_ids_) {
    if (!is_integer(sequence_ids_->dtype))
      refuse("the sequence ids {} are {}, expected int32 or int64", in_quotes(sequence_ids_->name),
             sequence_ids_->dtype_name);
    if (!std::equal(leading.begin(), leading.end(), sequence_ids_->shape.begin(), sequence_ids_->shape.end()))
      refuse("the sequence ids {} have the shape {}, expected {}", in_quotes(sequence_ids_->name),
             shape_text(sequence_ids_->shape), shape_text(leading));
  }
  // An empty tensor may claim any extents; its rows must still be countable.
  const auto rows = bytes_of(leading, 1);
  if (!rows)
    refuse("the logits {} have the shape {}, too many rows", in_quotes(logits_.name), shape_text(logits_.shape));
  rows_ = *rows;
  if (limit_rows >= 0 && limit_rows < rows_) {
    rows_ = limit_rows;
    shape_ = {rows_, columns()};
  }
}

std::span<const std::byte> RowSet::logits(std::int64_t first_row, std::int64_t rows) const {
  return logits_.bytes.subspan(static_cast<std::size_t>(first_row * row_bytes()),
                               static_cast<std::size_t>(rows * row_bytes()));
}

std::int64_t RowSet::target_id(std::int64_t row, std::int64_t k) const {
  return integer_at(target_ids_, row * ids_per_row_ + k);
}

std::vector<std::byte> RowSet::copy_ids(std::int64_t first_row, std::int64_t rows) const {
  const std::int64_t row_ids = ids_per_row_ * size_of(id_dtype());
  const std::byte* const begin = target_ids_.bytes.data() + first_row * row_ids;
  return {begin, begin + rows * row_ids};
}

std::int64_t RowSet::sequence(std::int64_t row) const {
  if (sequence_ids_) return integer_at(*sequence_ids_, row);
  return logits_.shape.size() > 2 ? row / logits_.shape[logits_.shape.size() - 2] : 0;
}

void RowSet::check_ids(std::int64_t vocab_size, std::int64_t ignore_index) const {
  const std::int64_t used = vocab_size < 0 ? columns() : std::min(vocab_size, columns());
  finish_reading(target_ids_.bytes);
  for (std::int64_t row = 0; row < rows_; ++row)
    for (std::int64_t k = 0; k < ids_per_row_; ++k) {
      const std::int64_t id = target_id(row, k);
      if (id != ignore_index && (id < 0 || id >= used))
        throw Error(ErrorKind::out_of_range,
                    fmt::format("row {} has the target id {}, expected one in [0, {}) or the ignored one, {}", row, id,
                                used, ignore_index));
    }
}

} // namespace bilogp::score
