// One drawn case of the differential test: a batch, a level and shard cuts, all from one number.
#pragma once

#include <cstdint>
#include <string>

#include "tests/cpu/mixed.hpp"

namespace bilogp::test {

struct RandomCase {
  Mix mix;
  Runtime* runtime = nullptr;
  std::int64_t cuts = 0;
  unsigned mode = 0; // bits of the floating-point control register during the calls
};

RandomCase draw_case(std::uint64_t seed);
// "" or the first difference.
std::string run_case(const RandomCase& drawn);

} // namespace bilogp::test
