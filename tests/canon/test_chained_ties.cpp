// The adversarial rows are what they claim: a term about 2^-130 below the sum decides it.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/reference/canon_reference.hpp"
#include "tests/reference/chained_ties.hpp"
#include "tests/reference/compare.hpp"
#include "tests/reference/row_generators.hpp"

namespace reference = bilogp::reference;
using reference::Storage;

namespace {

constexpr std::uint32_t minus_infinity = 0xff800000;

void check_decides(const reference::ChainedTies& chain) {
  const reference::Node root = reference::sum(chain.logits, 0, {});
  auto without = chain.logits;
  without[static_cast<std::size_t>(chain.decisive_column)] = minus_infinity;
  const reference::Node other = reference::sum(without, 0, {});
  CHECK_MESSAGE(!(root == other), reference::to_string(root));
  // One unit in the last place, which is all that a rounding decides.
  CHECK(std::abs(static_cast<int>(root.m_bits - other.m_bits)) == (root.E == other.E ? 1 : 0x7fffff));
  // Hence the term is seen in lse or logp of no other column only by way of the sum: its own share is nothing.
  CHECK(chain.depth ==
        root.E - reference::sum({&chain.logits[static_cast<std::size_t>(chain.decisive_column)], 1}, 0, {}).E);
}

} // namespace

TEST_CASE("chained ties carry a tiny term to the root") {
  for (const Storage storage : {Storage::float32, Storage::float16, Storage::bfloat16}) {
    CAPTURE(reference::to_string(storage));
    for (const std::int64_t columns : {256, 300, 512, 1024, 1500, 4096, 5000, 8192, 32768, 49152, 128256}) {
      CAPTURE(columns);
      for (const bool filled : {false, true}) {
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          CAPTURE(seed);
          const auto chain = reference::make_chained_ties(columns, storage, filled, seed);
          REQUIRE(static_cast<std::int64_t>(chain.logits.size()) == columns);
          check_decides(chain);
          if (columns >= 512) CHECK(chain.depth >= 130);
        }
      }
    }
  }
}

TEST_CASE("narrow chained ties reach as far as they can") {
  for (const Storage storage : {Storage::float32, Storage::float16, Storage::bfloat16}) {
    for (const std::int64_t columns : {1, 2, 3, 4, 7, 8, 16, 31, 32, 64, 128, 255}) {
      const auto chain = reference::make_chained_ties(columns, storage, columns % 2 == 0, 5);
      CAPTURE(columns);
      CAPTURE(reference::to_string(storage));
      REQUIRE(static_cast<std::int64_t>(chain.logits.size()) == columns);
      if (columns >= 4) check_decides(chain);
      if (columns >= 32) CHECK(chain.depth >= 65);
    }
  }
}

TEST_CASE("a flush relative to the maximum would be seen") {
  // What a kernel with a flush threshold 126 below its maximum computes for such a row is wrong.
  const auto chain = reference::make_chained_ties(8192, Storage::bfloat16, true, 1);
  auto flushed = chain.logits;
  float maximum = -INFINITY;
  for (const std::uint32_t bits : flushed) maximum = std::max(maximum, std::bit_cast<float>(bits));
  for (std::uint32_t& bits : flushed)
    if (std::bit_cast<float>(bits) < maximum - 88.0F) bits = minus_infinity;
  CHECK_FALSE(reference::sum(flushed, 0, {}) == reference::sum(chain.logits, 0, {}));
}
