// Rules for whole rows that the hand-made cases do not cover: several ids, ignored rows, temperatures, the caller's
// floating environment, and facts that hold for every row.
#include <doctest/doctest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <random>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "tests/reference/canon_arithmetic.hpp"
#include "tests/reference/compare.hpp"
#include "tests/reference/row_generators.hpp"

namespace reference = bilogp::reference;
namespace detail = bilogp::reference::detail;
using reference::RowKind;
using reference::Storage;

namespace {

constexpr std::uint32_t quiet_nan = 0x7fc00000;

std::vector<std::uint32_t> bits_of(std::initializer_list<float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

void check_same(std::span<const std::uint32_t> got, std::span<const std::uint32_t> expected) {
  const auto difference = reference::compare_bits(got, expected, got.size());
  CHECK_MESSAGE(difference.none(), difference.report);
}

} // namespace

TEST_CASE("several ids are answered as each alone; a row is ignored only when all are") {
  for (const RowKind kind : {RowKind::normal_5, RowKind::masked_third, RowKind::nan_somewhere, RowKind::masked_all}) {
    const auto row = reference::make_row(kind, 300, Storage::float32, 3);
    const auto ids = reference::make_target_ids(row, 40, {}, true, 4);
    const auto together = reference::score(row, ids, {});
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const auto alone = reference::score(row, {&ids[k], 1}, {});
      CHECK(together.logp[k] == alone.logp[0]);
      if (ids[k] == -100) CHECK(alone.state == reference::Node{});
      if (ids[k] == -100) CHECK(alone.lse == 0);
      if (ids[k] != -100) CHECK(alone.state == together.state);
      if (ids[k] != -100) CHECK(alone.lse == together.lse);
    }
    const std::vector<std::int64_t> ignored(3, -100);
    const auto nothing = reference::score(row, ignored, {});
    check_same(nothing.logp, bits_of({0.0F, 0.0F, 0.0F}));
    CHECK(nothing.state == reference::Node{});
  }
}

TEST_CASE("ignore_index wins over everything, even as a valid id") {
  reference::RowOptions options;
  options.ignore_index = 1;
  options.temperature = -1.0F; // ignored rows are not checked
  const auto row = bits_of({1.0F, 2.0F, std::numeric_limits<float>::quiet_NaN()});
  const std::int64_t id = 1;
  CHECK(reference::score(row, {&id, 1}, options).logp[0] == 0);
  check_same(reference::gradient(row, id, 1.0F, options), bits_of({0.0F, 0.0F, 0.0F}));
}

TEST_CASE("a temperature out of range poisons the row") {
  const auto row = bits_of({1.0F, 2.0F, 3.0F});
  for (const float temperature : {0.0F, -1.0F, 0x1.fffffep-21F, 0x1.000002p20F, std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::quiet_NaN()}) {
    reference::RowOptions options;
    options.temperature = temperature;
    const std::vector<std::int64_t> ids{0, 7, -100};
    const auto answer = reference::score(row, ids, options);
    CHECK(answer.logp == std::vector<std::uint32_t>{quiet_nan, quiet_nan, 0});
    CHECK(answer.lse == quiet_nan);
    CHECK(answer.state == reference::Node{quiet_nan, 0});
    CHECK(reference::gradient(row, 0, 1.0F, options) == std::vector<std::uint32_t>(3, quiet_nan));
    CHECK(reference::gradient(row, 7, 1.0F, options) == std::vector<std::uint32_t>(3, 0));
  }
}

TEST_CASE("columns beyond vocab_size do not matter") {
  for (const RowKind kind : reference::all_kinds()) {
    CAPTURE(reference::to_string(kind));
    const auto row = reference::make_row(kind, 200, Storage::float32, 8);
    auto spoiled = row;
    for (std::size_t j = 130; j < spoiled.size(); ++j) spoiled[j] = j % 3 == 0 ? quiet_nan : 0x7f7fffff;
    reference::RowOptions options;
    options.vocab_size = 130;
    const auto ids = reference::make_target_ids(row, 20, options, true, 9);
    const auto one = reference::score(row, ids, options);
    const auto two = reference::score(spoiled, ids, options);
    const auto cut = reference::score(std::span(row).first(130), ids, {});
    check_same(one.logp, two.logp);
    check_same(one.logp, cut.logp);
    CHECK(one.state == two.state);
    CHECK(one.state == cut.state);
    check_same(reference::gradient(row, 5, 0.5F, options), reference::gradient(spoiled, 5, 0.5F, options));
  }
}

TEST_CASE("logp is never above zero and probabilities never above one") {
  for (const RowKind kind : reference::all_kinds()) {
    for (const std::int64_t columns : {1, 2, 3, 7, 64, 100, 257}) {
      for (const float temperature : {1.0F, 0.7F, 3.0F}) {
        reference::RowOptions options;
        options.temperature = temperature;
        const auto row = reference::make_row(kind, columns, Storage::bfloat16, static_cast<std::uint64_t>(columns));
        std::vector<std::int64_t> ids;
        for (std::int64_t j = 0; j < columns; ++j) ids.push_back(j);
        for (const std::uint32_t logp : reference::score(row, ids, options).logp) {
          const bool fine = logp == 0 || logp == quiet_nan || (logp >> 31) == 1; // +0, NaN or negative
          if (!fine) CAPTURE(reference::to_string(kind));
          REQUIRE(fine);
          REQUIRE(logp != 0x80000000); // never -0
        }
      }
    }
  }
}

TEST_CASE("the caller's floating environment changes nothing and comes back") {
  for (const RowKind kind : {RowKind::normal_5, RowKind::denormal, RowKind::two_clusters, RowKind::saturated}) {
    const auto row = reference::make_row(kind, 500, Storage::float32, 6);
    reference::RowOptions options;
    options.temperature = 0.9F;
    const std::vector<std::int64_t> ids{0, 77, 499};
    const auto answer = reference::score(row, ids, options);
    const auto gradient = reference::gradient(row, 77, 1e-30F, options);
    for (const int rounding : {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO, FE_TONEAREST}) {
      std::fesetround(rounding);
#if defined(__SSE2__)
      const unsigned before = _mm_getcsr();
      _mm_setcsr(before | 0x8040U); // flush to zero, denormals are zero
#endif
      const auto other = reference::score(row, ids, options);
      const auto other_gradient = reference::gradient(row, 77, 1e-30F, options);
      const auto other_row = reference::make_row(kind, 500, Storage::float32, 6);
      const int rounding_after = std::fegetround();
#if defined(__SSE2__)
      CHECK((_mm_getcsr() & 0x8040U) == 0x8040U);
      _mm_setcsr(before);
#endif
      std::fesetround(FE_TONEAREST);
      CHECK(rounding_after == rounding);
      CHECK(other_row == row);
      check_same(other.logp, answer.logp);
      CHECK(other.lse == answer.lse);
      CHECK(other.state == answer.state);
      check_same(other_gradient, gradient);
    }
  }
}

TEST_CASE("a constant whose product with c is an integer cancels to the bit") {
  // 2^23 * c is an integer, so n moves by it and f stays.
  std::mt19937_64 random(14);
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::vector<std::uint32_t> row(150);
    std::vector<std::uint32_t> moved(150);
    const double shift = 0x1p23 * static_cast<double>(static_cast<int>(random() % 2) * 2 - 1);
    for (std::size_t j = 0; j < row.size(); ++j) {
      // Whole numbers this small stay exact when moved.
      const double x = 2.0 * static_cast<double>(static_cast<int>(random() % 61) - 30);
      row[j] = std::bit_cast<std::uint32_t>(static_cast<float>(x));
      moved[j] = std::bit_cast<std::uint32_t>(static_cast<float>(x + shift));
      REQUIRE(static_cast<double>(std::bit_cast<float>(moved[j])) == x + shift);
    }
    const std::vector<std::int64_t> ids{0, 1, 149};
    const auto one = reference::score(row, ids, {});
    const auto two = reference::score(moved, ids, {});
    check_same(two.logp, one.logp);
    CHECK(two.state.m_bits == one.state.m_bits);
    CHECK(two.state.E - one.state.E == static_cast<std::int32_t>(shift * 0x1.715476p+0));
    check_same(reference::gradient(moved, 1, 0.3F, {}), reference::gradient(row, 1, 0.3F, {}));
  }
}

TEST_CASE("an infinite or NaN upstream gradient spreads to near columns only") {
  const auto row = bits_of({0.0F, -1.0F, -100.0F, -std::numeric_limits<float>::infinity()});
  for (const float g : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const auto gradient = reference::gradient(row, 0, g, {});
    CHECK(!std::isfinite(std::bit_cast<float>(gradient[0])));
    CHECK(!std::isfinite(std::bit_cast<float>(gradient[1])));
    CHECK(gradient[2] == 0);
    CHECK(gradient[3] == 0);
  }
}

TEST_CASE("the far rule turns at an exponent of -99") {
  // The sum is 2^0, so the leaf nearest to 2^n has the distance n.
  for (std::int32_t n = -103; n <= -95; ++n) {
    const float x = static_cast<float>(n / 0x1.715476p+0);
    const auto row = bits_of({0.0F, x, -std::numeric_limits<float>::infinity()});
    const auto gradient = reference::gradient(row, 0, 1.0F, {});
    CHECK((gradient[1] != 0) == (n >= -99));
    CHECK(gradient[2] == 0);
  }
}

TEST_CASE("a target below the bound counts by its own logit once the sum is 40 places above") {
  int own = 0;
  int clamped = 0;
  for (int step = 0; step < 400; ++step) {
    reference::RowOptions options;
    options.temperature = 1.10F + static_cast<float>(step) * 0.00025F; // 32 logits are 42 places, then 38
    const auto row = bits_of({-0x1p29F + 32, -0x1p29F - 64, -0x1p29F});
    const std::vector<std::int64_t> ids{1, 2};
    const auto answer = reference::score(row, ids, options);
    const auto scale = detail::make_scale(options.temperature);
    const detail::Leaf leaf = detail::make_leaf(row[1], scale);
    CHECK(leaf.n == detail::make_leaf(row[2], scale).n);
    const double m = static_cast<double>(std::bit_cast<float>(answer.state.m_bits));
    const double exponents = static_cast<double>(leaf.n - answer.state.E);
    const double by_leaf = (exponents + detail::log2_canon(static_cast<double>(leaf.p) / m)) * (1.0 / 0x1.715476p+0);
    // A target at the bound itself goes by its leaf.
    CHECK(answer.logp[1] == std::bit_cast<std::uint32_t>(static_cast<float>(by_leaf)));
    const bool is_own = std::bit_cast<float>(answer.logp[0]) < -60.0F / options.temperature;
    CHECK(is_own == (answer.state.E - leaf.n > 40));
    if (!is_own) CHECK(answer.logp[0] == answer.logp[1]);
    ++(is_own ? own : clamped);
  }
  CHECK(own > 20);
  CHECK(clamped > 20);
}
