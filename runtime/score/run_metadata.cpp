#include "runtime/score/run_metadata.hpp"

#include <fmt/format.h>

namespace bilogp::score {

std::map<std::string, std::string> run_metadata(const ScoreOptions& options, std::int64_t columns) {
  const LogpOptions& logp = options.logp;
  return {
      {"contract", options.contract},
      {"temperature", fmt::format("{}", static_cast<float>(logp.temperature))},
      {"vocab_size", fmt::format("{}", logp.vocab_size < 0 ? columns : logp.vocab_size)},
      {"ignore_index", fmt::format("{}", logp.ignore_index)},
  };
}

} // namespace bilogp::score
