// Leaf, integer addition and log2 against MPFR.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/canon/mpfr_number.hpp"
#include "tests/reference/canon_arithmetic.hpp"

namespace detail = bilogp::reference::detail;
using bilogp::test::MpfrNumber;
using detail::Term;

namespace {

// RN24(a + b) by MPFR; its exponent range is far beyond int32.
Term mpfr_add(const Term& a, const Term& b) {
  static MpfrNumber left(24);
  static MpfrNumber right(24);
  static MpfrNumber sum(24);
  mpfr_set_ui_2exp(left, a.significand, a.exponent - 23, MPFR_RNDN);
  mpfr_set_ui_2exp(right, b.significand, b.exponent - 23, MPFR_RNDN);
  mpfr_add(sum, left, right, MPFR_RNDN);
  const auto exponent = static_cast<std::int32_t>(mpfr_get_exp(sum) - 1);
  mpfr_mul_2si(sum, sum, 23 - exponent, MPFR_RNDN);
  return {static_cast<std::uint32_t>(mpfr_get_ui(sum, MPFR_RNDN)), exponent};
}

void check_add(const Term& a, const Term& b) {
  const Term got = detail::add_terms(a, b);
  const Term expected = mpfr_add(a, b);
  if (got == expected && detail::add_terms(b, a) == expected) return;
  CAPTURE(a.significand);
  CAPTURE(a.exponent);
  CAPTURE(b.significand);
  CAPTURE(b.exponent);
  CHECK(got.significand == expected.significand);
  CHECK(got.exponent == expected.exponent);
}

std::uint32_t random_significand(std::mt19937_64& random) {
  const auto bits = static_cast<std::uint32_t>(random());
  std::uint32_t significand = (bits & 0x7fffffU) | 0x800000U;
  // Long runs of zeros and ones are where ties and carries are.
  const std::uint32_t run = (1U << (bits >> 24 & 0xfU)) - 1;
  if ((bits >> 30) == 1) significand &= ~run;
  if ((bits >> 30) == 2) significand |= run;
  return significand;
}

} // namespace

TEST_CASE("node addition rounds as MPFR does, millions of pairs") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 4'000'000; ++i) {
    const auto exponent = static_cast<std::int32_t>(random() % 2'000'000'000) - 1'000'000'000;
    const auto distance = static_cast<std::int32_t>(random() % 30);
    check_add({random_significand(random), exponent}, {random_significand(random), exponent - distance});
  }
}

TEST_CASE("node addition at exact ties and one unit beside them") {
  std::mt19937_64 random(8);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto distance = static_cast<std::int32_t>(1 + random() % 24);
    const std::uint32_t large = random_significand(random);
    // The lowest `distance` bits of the smaller one are cut off: 100...0 is a tie.
    const std::uint32_t mask = (1U << distance) - 1;
    const std::uint32_t tie = (random_significand(random) & ~mask) | (1U << (distance - 1)) | 0x800000U;
    for (const std::int32_t offset : {-1, 0, 1}) {
      const std::uint32_t small = tie + static_cast<std::uint32_t>(offset);
      if (small >= 0x800000U && small < 0x1000000U) check_add({large, 0}, {small, -distance});
    }
  }
}

TEST_CASE("node addition far apart, zeros and poison") {
  const Term one{0x800000, 0};
  const Term tiny{0xffffff, -1'000'000'000};
  const Term huge{0xffffff, 1'000'000'000};
  CHECK(detail::add_terms(huge, tiny) == huge);
  CHECK(detail::add_terms(tiny, huge) == huge);
  CHECK(detail::add_terms(Term{}, tiny) == tiny);
  CHECK(detail::add_terms(one, Term{}) == one);
  CHECK(detail::add_terms(Term{}, Term{}) == Term{});
  CHECK(detail::add_terms(detail::poison_term, Term{}) == detail::poison_term);
  CHECK(detail::add_terms(huge, detail::poison_term) == detail::poison_term);
  CHECK(detail::to_node(Term{}) == bilogp::reference::Node{0, INT32_MIN});
  CHECK(detail::to_node(detail::poison_term) == bilogp::reference::Node{0x7fc00000, 0});
}

TEST_CASE("the leaf polynomial stays within the contract's error") {
  std::mt19937_64 random(9);
  MpfrNumber power(80);
  MpfrNumber error(80);
  double worst = 0;
  float lowest = 2;
  float highest = 0;
  const auto look = [&](float f) {
    const float p = detail::leaf_polynomial(f);
    mpfr_set_d(power, static_cast<double>(f), MPFR_RNDN);
    mpfr_exp2(power, power, MPFR_RNDN);
    mpfr_set_d(error, static_cast<double>(p), MPFR_RNDN);
    mpfr_sub(error, error, power, MPFR_RNDN);
    mpfr_div(error, error, power, MPFR_RNDN);
    worst = std::max(worst, std::fabs(mpfr_get_d(error, MPFR_RNDN)));
    lowest = std::min(lowest, p);
    highest = std::max(highest, p);
  };
  for (int i = -500'000; i <= 500'000; ++i) look(static_cast<float>(i) * 1e-6F);
  std::uniform_real_distribution<float> uniform(-0.5F, 0.5F);
  for (int i = 0; i < 500'000; ++i) look(uniform(random));
  for (const float f : {-0.5F, 0.5F, 0.0F, 0x1p-149F, -0x1p-149F, 0x1p-126F}) look(f);
  MESSAGE("largest relative error ", worst);
  CHECK(worst <= 1.6e-7);
  CHECK(worst > 1e-8); // the measurement measures
  CHECK(lowest >= 0.7071F);
  CHECK(highest <= 1.4143F);
  CHECK(detail::leaf_polynomial(0.5F) == 2 * detail::leaf_polynomial(-0.5F));
  CHECK(detail::leaf_polynomial(0.0F) == 1.0F);
}

TEST_CASE("n and f of a leaf are exact for every magnitude and temperature") {
  std::mt19937_64 random(10);
  MpfrNumber product(64);
  MpfrNumber integer(64);
  for (const float temperature : {1.0F, 0.7F, 0.1F, 2.0F, 3.3F, 0x1p-20F, 0x1p20F, 0x1.234566p-20F}) {
    const detail::Scale scale = detail::make_scale(temperature);
    CAPTURE(temperature);
    for (int i = 0; i < 300'000; ++i) {
      const auto bits = static_cast<std::uint32_t>(random());
      const float x = std::bit_cast<float>(bits);
      if (!std::isfinite(x)) continue;
      const detail::Leaf leaf = detail::make_leaf(bits, scale);
      const double clamped =
          std::clamp(static_cast<double>(x), -static_cast<double>(scale.bound), static_cast<double>(scale.bound));
      mpfr_set_d(product, clamped, MPFR_RNDN);
      mpfr_mul_d(product, product, static_cast<double>(scale.c), MPFR_RNDN);
      mpfr_rint(integer, product, MPFR_RNDN);
      const long n = mpfr_get_si(integer, MPFR_RNDN);
      mpfr_sub_si(product, product, n, MPFR_RNDN);
      const bool same = leaf.n == n && leaf.f == mpfr_get_flt(product, MPFR_RNDN);
      if (!same) CAPTURE(bits);
      if (!same) CHECK(leaf.n == n);
      REQUIRE(same);
    }
  }
}

TEST_CASE("n goes to the even side of a tie") {
  const float unit_scale = 1.442695F; // c = 1
  REQUIRE(detail::make_scale(unit_scale).c == 1.0F);
  for (int whole = -1000; whole < 1000; ++whole) {
    const float x = static_cast<float>(whole) + 0.5F;
    const detail::Leaf leaf = detail::make_leaf(detail::as_bits(x), detail::make_scale(unit_scale));
    REQUIRE(leaf.n % 2 == 0);
    REQUIRE(static_cast<float>(leaf.n) + leaf.f == x);
  }
  // At T = 1 the significand of c is odd, so ties are at odd multiples of 2^22, where n has 24 bits.
  for (int odd = -63; odd <= 63; odd += 2) {
    const detail::Leaf leaf =
        detail::make_leaf(detail::as_bits(static_cast<float>(odd) * 0x1p22F), detail::make_scale(1.0F));
    REQUIRE(std::fabs(leaf.f) == 0.5F);
    REQUIRE(leaf.n % 2 == 0);
  }
}

TEST_CASE("temperature gives c, 1/T and the bound") {
  std::mt19937_64 random(12);
  MpfrNumber quotient(200);
  for (int i = 0; i < 100'000; ++i) {
    const float temperature =
        std::ldexp(1.0F + static_cast<float>(random() % 0x800000) * 0x1p-23F, static_cast<int>(random() % 40) - 20);
    const detail::Scale scale = detail::make_scale(temperature);
    REQUIRE(scale.valid);
    const double c = static_cast<double>(scale.c);
    const double bound = static_cast<double>(scale.bound);
    REQUIRE((std::bit_cast<std::uint64_t>(bound) << 12) == 0); // a power of two
    REQUIRE(bound * c < 0x1p30);
    REQUIRE((bound == 0x1p29 || 2 * bound * c >= 0x1p30));
    mpfr_set_d(quotient, 0x1.71547652b82fep+0, MPFR_RNDN);
    mpfr_div_d(quotient, quotient, static_cast<double>(temperature), MPFR_RNDN);
    REQUIRE(scale.c == static_cast<float>(mpfr_get_d(quotient, MPFR_RNDN)));
  }
  CHECK(detail::make_scale(1.0F).c == 0x1.715476p+0F);
  CHECK(detail::make_scale(0x1p-20F).bound == 512.0F);
  CHECK(detail::make_scale(0.7214F).bound == 0x1p29F);
  CHECK_FALSE(detail::make_scale(0x1.fffffep-21F).valid);
  CHECK_FALSE(detail::make_scale(0x1.000002p20F).valid);
  CHECK_FALSE(detail::make_scale(0.0F).valid);
  CHECK_FALSE(detail::make_scale(-1.0F).valid);
  CHECK_FALSE(detail::make_scale(std::numeric_limits<float>::quiet_NaN()).valid);
  CHECK_FALSE(detail::make_scale(std::numeric_limits<float>::infinity()).valid);
}

TEST_CASE("log2 keeps 51 bits") {
  std::mt19937_64 random(13);
  MpfrNumber exact(120);
  MpfrNumber error(120);
  double worst_absolute = 0;
  double worst_relative = 0;
  const auto look = [&](double z) {
    mpfr_set_d(exact, z, MPFR_RNDN);
    mpfr_log2(exact, exact, MPFR_RNDN);
    mpfr_d_sub(error, detail::log2_canon(z), exact, MPFR_RNDN);
    worst_absolute = std::max(worst_absolute, std::fabs(mpfr_get_d(error, MPFR_RNDN)));
    if (mpfr_zero_p(static_cast<mpfr_srcptr>(exact)) != 0) return;
    mpfr_div(error, error, exact, MPFR_RNDN);
    worst_relative = std::max(worst_relative, std::fabs(mpfr_get_d(error, MPFR_RNDN)));
  };
  std::uniform_real_distribution<double> uniform(0.35, 2.0);
  for (int i = 0; i < 300'000; ++i) look(uniform(random));
  std::uniform_real_distribution<double> exponent(-52, -2);
  for (int i = 0; i < 100'000; ++i) { // near 1, where digits would cancel
    const double step = std::exp2(exponent(random));
    look(1.0 + step);
    look(1.0 - step);
  }
  for (const double edge : {0x1.6a09e667f3bcdp+0, 0x1.6a09e667f3bcep+0, 0x1.6a09e667f3bccp+0, 0x1.6a09e667f3bcdp-1,
                            0x1.6a09e667f3bccp-1, 0.35, 0x1.fffffep+0, 0.5})
    look(edge);
  MESSAGE("largest error ", worst_absolute, " absolute, ", worst_relative, " relative");
  CHECK(worst_absolute < 0x1p-51);
  CHECK(worst_relative < 0x1p-50);
  CHECK(detail::log2_canon(1.0) == 0.0);
  CHECK(detail::log2_canon(0.5) == -1.0);
}
