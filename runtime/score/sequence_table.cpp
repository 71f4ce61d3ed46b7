#include "runtime/score/sequence_table.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace bilogp::score {

void SequenceScore::add(const SequenceScore& other) {
  tokens += other.tokens;
  ignored += other.ignored;
  nan += other.nan;
  sum += other.sum;
}

double SequenceScore::mean() const {
  return tokens == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(tokens);
}

double SequenceScore::perplexity() const {
  return std::exp(-mean());
}

void SequenceTable::take(const Chunk& chunk) {
  for (std::int64_t i = 0; i < chunk.rows; ++i) {
    const std::int64_t row = chunk.first_row + i;
    const auto [found, added] = index_.try_emplace(rows_.sequence(row), sequences_.size());
    if (added) sequences_.push_back({.id = found->first});
    SequenceScore& sequence = sequences_[found->second];
    const auto logp = std::bit_cast<float>(chunk.logp[static_cast<std::size_t>(i * rows_.ids_per_row())]);
    if (rows_.target_id(row, 0) == ignore_index_) {
      ++sequence.ignored;
    } else if (std::isnan(logp)) {
      ++sequence.nan;
    } else {
      ++sequence.tokens;
      sequence.sum += logp;
    }
  }
}

SequenceScore SequenceTable::total() const {
  SequenceScore total;
  for (const SequenceScore& sequence : sequences_) total.add(sequence);
  return total;
}

} // namespace bilogp::score
