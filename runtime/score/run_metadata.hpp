// What a results file says about its run: everything that may change a bit, and nothing else, so that the files of two
// machines are equal byte for byte.
//
// Thread-safety: a pure function.
#pragma once

#include <map>
#include <string>

#include "runtime/score/score_rows.hpp"

namespace bilogp::score {

// "contract", "temperature" (the binary32 used), "vocab_size" (of the columns used), "ignore_index".
std::map<std::string, std::string> run_metadata(const ScoreOptions& options, std::int64_t columns);

} // namespace bilogp::score
