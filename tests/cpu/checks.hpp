// What a doctest case says about a batch.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/cpu/mixed.hpp"

namespace bilogp::test {

inline void check_same(const std::string& difference) {
  CHECK_MESSAGE(difference.empty(), difference);
}

// A batch made from `mix`, compared in every way on one level.
inline void check_mix(const Mix& mix, Runtime& runtime, std::int64_t cuts = 0) {
  Batch batch = mixed_batch(mix);
  std::mt19937_64 random(mix.seed);
  const std::string difference = check_everything(batch, runtime, random_cuts(random, mix.columns, cuts));
  CHECK_MESSAGE(difference.empty(), describe(mix) << ": " << difference);
}

} // namespace bilogp::test
