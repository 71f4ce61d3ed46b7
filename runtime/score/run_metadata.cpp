#include "runtime/score/run_metadata.hpp"

#include <fmt/format.h>

#include "bilogp/version.hpp"

namespace bilogp::score {

std::map<std::string, std::string> run_metadata(const LogpOptions& options, std::int64_t columns) {
  return {
      {"contract", std::string(contract_id(options.numerics))},
      {"temperature", fmt::format("{}", static_cast<float>(options.temperature))},
      {"vocab_size", fmt::format("{}", options.vocab_size < 0 ? columns : options.vocab_size)},
      {"ignore_index", fmt::format("{}", options.ignore_index)},
  };
}

} // namespace bilogp::score
