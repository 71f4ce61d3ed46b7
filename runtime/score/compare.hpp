// Compares this run with the results of another one, of another device or machine, bit by bit.
//
// Thread-safety: one call at a time.
#pragma once

#include <string>

#include "runtime/score/bit_differences.hpp"
#include "runtime/score/inputs.hpp"
#include "runtime/score/score_rows.hpp"

namespace bilogp::score {

// Compares `logp`, and `lse`, `row_state` and (with grad) `grad_logits` where the other file has them.
class Compare : public ChunkSink {
public:
  // Opens the other run's .safetensors. Throws Error when it cannot be read, has no logp, has other shapes, or says
  // that it was made under another contract or with other options.
  Compare(const std::string& path, const RowSet& rows, const ScoreOptions& options);
  void take(const Chunk& chunk) override;
  [[nodiscard]] const BitDifferences& differences() const { return differences_; }
  // What the other file does not say and the bits depend on, first of all its contract, as a sentence; empty when it
  // says it all.
  [[nodiscard]] const std::string& warning() const { return warning_; }

private:
  const FileTensor* find(const char* name, DType dtype, std::int64_t elements);
  void check_same_run(const ScoreOptions& options);

  OpenedSafetensors other_;
  const RowSet& rows_;
  const FileTensor* logp_;
  const FileTensor* lse_;
  const FileTensor* row_state_;
  const FileTensor* grad_logits_;
  BitDifferences differences_;
  std::string warning_;
};

} // namespace bilogp::score
