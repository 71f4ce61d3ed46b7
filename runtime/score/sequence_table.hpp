// Sums the scores of every sequence.
//
// Thread-safety: none; one owner.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runtime/score/score_rows.hpp"

namespace bilogp::score {

// Of rows with several target ids, the first one counts.
struct SequenceScore {
  std::int64_t id = 0;
  std::int64_t tokens = 0;  // scored rows
  std::int64_t ignored = 0; // rows whose target is ignore_index
  std::int64_t nan = 0;     // rows without a value (poisoned, or nothing but -inf); neither tokens nor in the sum
  double sum = 0;

  void add(const SequenceScore& other);
  [[nodiscard]] double mean() const;       // NaN without tokens
  [[nodiscard]] double perplexity() const; // e^-mean
};

class SequenceTable : public ChunkSink {
public:
  SequenceTable(const RowSet& rows, std::int64_t ignore_index) : rows_(rows), ignore_index_(ignore_index) {}
  void take(const Chunk& chunk) override;
  [[nodiscard]] const std::vector<SequenceScore>& sequences() const { return sequences_; } // in order of appearance
  [[nodiscard]] SequenceScore total() const;

private:
  const RowSet& rows_;
  std::int64_t ignore_index_;
  std::vector<SequenceScore> sequences_;
  std::unordered_map<std::int64_t, std::size_t> index_;
};

} // namespace bilogp::score
