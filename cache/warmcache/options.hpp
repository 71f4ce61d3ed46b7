// The command line of bilogp-warmcache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bilogp/specialization.hpp"

namespace bilogp::warmcache {

inline constexpr const char* program_name = "bilogp-warmcache";
inline constexpr int exit_fine = 0, exit_problem = 1, exit_usage = 2;

enum class Command { warm, list, verify, where, clear, doctor };

// Every combination is made ready; those that need the same machine code share a kernel.
struct WarmRequest {
  std::vector<Operator> operators;
  std::vector<DType> logits_dtypes;
  std::vector<DType> id_dtypes;
  std::vector<std::int64_t> vocab_sizes; // 0: any
  std::vector<Numerics> numerics;
  std::vector<std::string> targets; // as Runtime::get takes them
  int jobs = 0;                     // 0: the cores of this process
};

struct CommandLine {
  Command command = Command::where;
  bool json = false;
  WarmRequest warm;
};

// Nothing when the program is to end with `exit_code`: help was asked for, or a complaint was printed.
std::optional<CommandLine> parse_command_line(int argc, const char* const* argv, int& exit_code);

} // namespace bilogp::warmcache
