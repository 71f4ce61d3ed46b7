#include "runtime/score/compare.hpp"

#include <cstring>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/score/run_metadata.hpp"

namespace bilogp::score {
namespace {

std::uint32_t word_at(const FileTensor& tensor, std::int64_t index, std::int64_t bytes = 4) {
  std::uint32_t word = 0;
  std::memcpy(&word, tensor.bytes.data() + index * bytes, static_cast<std::size_t>(bytes));
  return word;
}

std::span<const std::byte> part_of(const FileTensor& tensor, const RowSet& rows, const Chunk& chunk) {
  const std::size_t row_bytes = rows.rows() == 0 ? 0 : tensor.bytes.size() / static_cast<std::size_t>(rows.rows());
  return tensor.bytes.subspan(static_cast<std::size_t>(chunk.first_row) * row_bytes,
                              static_cast<std::size_t>(chunk.rows) * row_bytes);
}

} // namespace

Compare::Compare(const std::string& path, const RowSet& rows, const ScoreOptions& options)
    : other_(open_safetensors(path)), rows_(rows) {
  check_same_run(options);
  static_cast<void>(other_.get("logp")); // throws, naming what there is
  logp_ = find("logp", DType::float32, rows.rows() * rows.ids_per_row());
  lse_ = find("lse", DType::float32, rows.rows());
  row_state_ = find("row_state", DType::int32, rows.rows() * 2);
  grad_logits_ = options.grad ? find("grad_logits", rows.dtype(), rows.rows() * rows.columns()) : nullptr;
}

void Compare::check_same_run(const ScoreOptions& options) {
  std::string unsaid;
  for (const auto& [key, here] : run_metadata(options, rows_.columns())) {
    const std::string* const there = other_.find_metadata(key);
    if (there == nullptr) unsaid += (unsaid.empty() ? "" : ", ") + key;
    if (there != nullptr && *there != here)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{} was made with {} {}, this run has {}; their bits cannot be compared",
                              in_quotes(other_.file.path()), key, in_quotes(*there), here));
  }
  if (!unsaid.empty())
    warning_ = fmt::format("{} does not say its {}; bits can be compared only where all of that is equal, "
                           "which nothing has checked",
                           in_quotes(other_.file.path()), unsaid);
}

const FileTensor* Compare::find(const char* name, DType dtype, std::int64_t elements) {
  const FileTensor* const tensor = other_.find(name);
  if (tensor == nullptr) return nullptr;
  // A wrong dtype or shape is another run's file, even where the bytes would fit.
  const auto count = bytes_of(tensor->shape, 1);
  if (tensor->dtype != dtype || count != elements)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: {} is {} {}, expected {} with {} elements to compare with this run",
                            in_quotes(other_.file.path()), name, tensor->dtype_name, shape_text(tensor->shape),
                            to_string(dtype), elements));
  differences_.fields.emplace_back(name);
  return tensor;
}

void Compare::take(const Chunk& chunk) {
  const std::int64_t k_count = rows_.ids_per_row();
  const std::int64_t size = size_of(rows_.dtype());
  for (const FileTensor* const tensor : {logp_, lse_, row_state_, grad_logits_})
    if (tensor != nullptr) finish_reading(part_of(*tensor, rows_, chunk));
  for (std::int64_t i = 0; i < chunk.rows; ++i) {
    const std::int64_t row = chunk.first_row + i;
    differences_.begin_row(row);
    for (std::int64_t k = 0; k < k_count; ++k)
      differences_.compare("logp", chunk.logp[static_cast<std::size_t>(i * k_count + k)],
                           word_at(*logp_, row * k_count + k), k_count > 1 ? k : -1);
    if (lse_ != nullptr) differences_.compare("lse", chunk.lse[static_cast<std::size_t>(i)], word_at(*lse_, row));
    for (std::int64_t w = 0; row_state_ != nullptr && w < 2; ++w)
      differences_.compare("row_state",
                           static_cast<std::uint32_t>(chunk.row_state[static_cast<std::size_t>(2 * i + w)]),
                           word_at(*row_state_, 2 * row + w), w);
    for (std::int64_t j = 0; grad_logits_ != nullptr && j < rows_.columns(); ++j) {
      std::uint32_t here = 0;
      std::memcpy(&here, chunk.grad_logits.data() + (i * rows_.columns() + j) * size, static_cast<std::size_t>(size));
      differences_.compare("grad_logits", here, word_at(*grad_logits_, row * rows_.columns() + j, size), j,
                           static_cast<int>(8 * size));
    }
  }
  if (grad_logits_ != nullptr) forget(part_of(*grad_logits_, rows_, chunk));
}

} // namespace bilogp::score
