// Compares every row with the slow reference, bit by bit.
//
// Thread-safety: one call at a time; the reference itself runs on all threads of the arena it is called in.
#pragma once

#include "runtime/score/bit_differences.hpp"
#include "runtime/score/score_rows.hpp"

namespace bilogp::score {

class Verify : public ChunkSink {
public:
  Verify(const RowSet& rows, const ScoreOptions& options);
  void take(const Chunk& chunk) override;
  [[nodiscard]] const BitDifferences& differences() const { return differences_; }

private:
  [[nodiscard]] BitDifferences verify_row(const Chunk& chunk, std::int64_t index) const;

  const RowSet& rows_;
  const ScoreOptions& options_;
  BitDifferences differences_;
};

} // namespace bilogp::score
