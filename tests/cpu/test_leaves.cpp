// Leaves one by one: a row of one column has its leaf for a sum, so that (m, E) shows every bit of p.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "tests/cpu/checks.hpp"
#include "tests/reference/canon_arithmetic.hpp"

using namespace bilogp;
using namespace bilogp::test;

namespace {

constexpr float scale_of_one = 0x1.715476p+0F; // at this temperature c is 1: a logit of at most 1/2 is its own f

// Every float beside the places where a step of the polynomial changes its exponent or a product its sign, and others.
std::vector<float> fractions() {
  constexpr std::int32_t neighbours = 40000;
  std::vector<float> all;
  // The third is where the step that adds the second coefficient reaches 1/4.
  for (const float centre : {0.5F, 0.25F, 0x1.5e15acp-3F, 0.125F, 0x1p-12F, 0x1p-23F, 0x1p-24F, 0x1p-26F, 0x1p-31F})
    for (std::int32_t i = -neighbours; i <= neighbours; ++i) {
      const float f = std::bit_cast<float>(std::bit_cast<std::int32_t>(centre) + i);
      if (f > 0.5F) continue;
      all.push_back(f);
      all.push_back(-f);
    }
  std::mt19937 random(1); // NOLINT: the same every time
  std::uniform_real_distribution<float> uniform(-0.5F, 0.5F);
  for (int i = 0; i < 500000; ++i) all.push_back(uniform(random));
  return all;
}

} // namespace

TEST_SUITE_BEGIN("leaves");

TEST_CASE("the polynomial of a leaf, to the bit") {
  REQUIRE(reference::detail::make_scale(scale_of_one).c == 1.0F);
  const std::vector<float> f = fractions();
  const auto rows = static_cast<std::int64_t>(f.size());
  std::vector<float> p(f.size());
  std::transform(f.begin(), f.end(), p.begin(), reference::detail::leaf_polynomial);
  const std::vector<std::int64_t> ids(f.size(), 0);
  for (Runtime* runtime : levels()) {
    std::vector<float> logp(f.size());
    std::vector<std::int32_t> state(2 * f.size());
    LogpArgs args;
    args.logits = TensorView::contiguous(f.data(), DType::float32, {rows, 1});
    args.target_ids = TensorView::contiguous(ids.data(), DType::int64, {rows});
    args.logp = TensorView::contiguous(logp.data(), DType::float32, {rows});
    args.row_state = TensorView::contiguous(state.data(), DType::int32, {rows, 2});
    args.options.temperature = scale_of_one;
    runtime->logp(args);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < f.size(); ++i)
      if (std::ldexp(std::bit_cast<float>(state[2 * i]), state[2 * i + 1]) != p[i] && wrong++ == 0)
        CHECK_MESSAGE(false, runtime->target() << ": the leaf of " << f[i]);
    CHECK(wrong == 0);
  }
}
