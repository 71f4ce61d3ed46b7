// The same rows scored in different ways, for the invariance check.
//
// Thread-safety: pure functions besides the runtime's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bilogp/runtime.hpp"

namespace bilogp::score {

// Rows copied out of a file, with one target id each.
struct SampleRows {
  DType dtype = DType::float32;
  DType id_dtype = DType::int64;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::byte> logits; // [rows, columns]
  std::vector<std::byte> ids;    // [rows]

  [[nodiscard]] std::int64_t row_bytes() const { return columns * size_of(dtype); }
  [[nodiscard]] const std::byte* row(std::int64_t index) const { return logits.data() + index * row_bytes(); }
  [[nodiscard]] const std::byte* id(std::int64_t index) const { return ids.data() + index * size_of(id_dtype); }
};

struct Answers {
  std::vector<std::uint32_t> logp;
  std::vector<std::uint32_t> lse;
  std::vector<std::int32_t> row_state;

  explicit Answers(std::int64_t rows);
  [[nodiscard]] std::int64_t bits() const;
  [[nodiscard]] std::int64_t bits_different(const Answers& other) const;
};

// Scores `count` rows from `first` on where they lie, into the same rows of `answers`.
void score_in_place(Runtime& runtime, const SampleRows& sample, std::int64_t first, std::int64_t count,
                    const LogpOptions& options, Answers& answers);

Answers score_one_by_one(Runtime& runtime, const SampleRows& sample, const LogpOptions& options);
Answers score_in_batches(Runtime& runtime, const SampleRows& sample, std::int64_t batch, const LogpOptions& options);
Answers score_shuffled(Runtime& runtime, const SampleRows& sample, const LogpOptions& options);

// In rows V + 13 columns apart that begin off any vector's alignment, NaN in between.
Answers score_padded(Runtime& runtime, const SampleRows& sample, const LogpOptions& options);
// With 13 columns of NaN behind the vocabulary, excluded by vocab_size.
Answers score_wide(Runtime& runtime, const SampleRows& sample, const LogpOptions& options);
// As logits[:, :-1] of [B, T + 1, V], the last position of each sequence NaN.
Answers score_strided(Runtime& runtime, const SampleRows& sample, const LogpOptions& options);
// Each of `shards` uneven column ranges by itself, then joined.
Answers score_sharded(Runtime& runtime, const SampleRows& sample, std::int64_t shards, const LogpOptions& options);

} // namespace bilogp::score
