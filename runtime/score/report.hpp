// What a run found, as text for people and as JSON.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/score/bit_differences.hpp"
#include "runtime/score/invariance.hpp"
#include "runtime/score/score_rows.hpp"
#include "runtime/score/sequence_table.hpp"

namespace bilogp::score {

struct Report {
  std::string file;
  std::string target;   // "cpu:x86-64-v4"
  std::string contract; // "bilogp.canon-1.portable"
  const RowSet* rows = nullptr;
  ScoreOptions options;
  int threads = 0;
  std::vector<SequenceScore> sequences;
  SequenceScore total;
  std::vector<KernelInfo> kernels;
  ScoreTiming timing;
  std::string output;          // empty: none was written
  std::string other;           // the file compared with
  std::string compare_warning; // what nobody could check about it
  std::optional<BitDifferences> verified;
  std::optional<BitDifferences> compared;
  std::optional<InvarianceReport> invariance;

  [[nodiscard]] bool differs() const; // any comparison found a bit
};

std::string text_report(const Report& report);
std::string json_report(const Report& report);

} // namespace bilogp::score
