// The command line of bilogp-score.
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/score/inputs.hpp"
#include "runtime/score/score_rows.hpp"

namespace bilogp::score {

inline constexpr const char* program_name = "bilogp-score";
enum ExitCode : int { exit_fine = 0, exit_differences = 1, exit_bad_input = 2 };

struct CommandLine {
  InputOptions inputs;
  ScoreOptions score;
  std::string target = "auto";
  std::int64_t limit_rows = -1;
  std::string output;
  std::string compare;
  bool json = false;
  bool verify = false;
  bool invariance = false;
};

// Empty when there is nothing left to do: help and version go to stdout, a wrong usage goes to stderr as one sentence,
// and `exit_code` is what the program ends with.
std::optional<CommandLine> parse_command_line(int argc, const char* const* argv, int& exit_code);

} // namespace bilogp::score
