// The contract's answers are logarithms of probabilities: compared with MPFR, within the accuracy the contract states.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "tests/canon/mpfr_number.hpp"
#include "tests/reference/canon_reference.hpp"
#include "tests/reference/row_generators.hpp"
#include "tests/reference/sample_data.hpp"

namespace reference = bilogp::reference;
using bilogp::test::MpfrNumber;
using reference::RowKind;
using reference::Storage;

namespace {

double value_of(std::uint32_t bits) {
  return static_cast<double>(std::bit_cast<float>(bits));
}

struct ExactRow {
  double lse = 0;
  double logp = 0;
  double entropy = 0; // nats
};

ExactRow exact_row(std::span<const std::uint32_t> row, std::size_t target, double temperature) {
  MpfrNumber sum(120);
  MpfrNumber weighted(120);
  MpfrNumber power(120);
  MpfrNumber logit(120);
  mpfr_set_zero(sum, 1);
  mpfr_set_zero(weighted, 1);
  for (const std::uint32_t bits : row) {
    mpfr_set_d(logit, value_of(bits), MPFR_RNDN);
    if (mpfr_inf_p(static_cast<mpfr_srcptr>(logit)) != 0) continue; // -inf
    mpfr_div_d(logit, logit, temperature, MPFR_RNDN);
    mpfr_exp(power, logit, MPFR_RNDN);
    mpfr_add(sum, sum, power, MPFR_RNDN);
    mpfr_mul(power, power, logit, MPFR_RNDN);
    mpfr_add(weighted, weighted, power, MPFR_RNDN);
  }
  ExactRow exact;
  mpfr_div(weighted, weighted, sum, MPFR_RNDN);
  mpfr_log(sum, sum, MPFR_RNDN);
  exact.lse = mpfr_get_d(sum, MPFR_RNDN);
  mpfr_set_d(logit, value_of(row[target]), MPFR_RNDN);
  mpfr_div_d(logit, logit, temperature, MPFR_RNDN);
  mpfr_sub(logit, logit, sum, MPFR_RNDN);
  exact.logp = mpfr_get_d(logit, MPFR_RNDN);
  mpfr_sub(sum, sum, weighted, MPFR_RNDN);
  exact.entropy = mpfr_get_d(sum, MPFR_RNDN);
  return exact;
}

// What the parts may add up to: two leaves, the tree's roundings, the base, and the last rounding.
double logp_bound(const ExactRow& exact, std::size_t columns, bool unit) {
  const double tree = std::ceil(std::log2(static_cast<double>(columns)) + 1) * 0x1p-24;
  // The base of the exponential is 2^L; away from T = 1 the temperature is off by 6e-8 of itself, which moves logp by
  // that times its distance from the mean logit.
  const double base = 1.34e-8 * exact.entropy + (unit ? 1.34e-8 : 8e-8) * (std::fabs(exact.logp) + exact.entropy);
  return 2 * 1.6e-7 + tree + base + 0x1p-24 * std::fabs(exact.logp);
}

void check_logp(std::span<const std::uint32_t> row, std::int64_t target, float temperature, double& worst) {
  reference::RowOptions options;
  options.temperature = temperature;
  const auto answer = reference::score(row, {&target, 1}, options);
  const auto exact = exact_row(row, static_cast<std::size_t>(target), static_cast<double>(temperature));
  const double error = std::fabs(value_of(answer.logp[0]) - exact.logp);
  worst = std::max(worst, error);
  CHECK(error <= logp_bound(exact, row.size(), temperature == 1.0F));
  const double lse_error = std::fabs(value_of(answer.lse) - exact.lse);
  CHECK(lse_error <= 4e-7 + 1.5e-7 * std::fabs(exact.lse));
}

} // namespace

TEST_CASE("real rows agree with MPFR") {
  const auto& sample = reference::sample_rows();
  double worst = 0;
  for (std::int64_t i = 0; i < sample.rows; i += 8) {
    const auto row = sample.row(i);
    for (const float temperature : {1.0F, 0.7F})
      check_logp(row, sample.target_ids[static_cast<std::size_t>(i)], temperature, worst);
  }
  MESSAGE("largest error of logp ", worst);
}

TEST_CASE("random rows agree with MPFR") {
  double worst = 0;
  for (const RowKind kind : {RowKind::normal_half, RowKind::normal_2, RowKind::normal_5, RowKind::normal_60,
                             RowKind::offset_high, RowKind::masked_third, RowKind::gap_range, RowKind::all_equal}) {
    CAPTURE(reference::to_string(kind));
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const auto row = reference::make_row(kind, 700, Storage::float32, seed);
      std::int64_t target = static_cast<std::int64_t>(seed * 17 % 700);
      while (row[static_cast<std::size_t>(target)] == 0xff800000) ++target;
      check_logp(row, target, seed % 2 == 0 ? 1.0F : 0.7F, worst);
    }
  }
  MESSAGE("largest error of logp ", worst);
}

TEST_CASE("a gradient row sums to nearly nothing and has the right parts") {
  for (const RowKind kind : {RowKind::normal_half, RowKind::normal_5, RowKind::masked_third, RowKind::two_clusters,
                             RowKind::saturated, RowKind::offset_low}) {
    CAPTURE(reference::to_string(kind));
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const auto row = reference::make_row(kind, 1000, Storage::bfloat16, seed);
      const std::int64_t target = static_cast<std::int64_t>(seed * 31 % 1000);
      const float g = seed % 2 == 0 ? 1.0F : -0.375F;
      reference::RowOptions options;
      options.temperature = seed % 3 == 0 ? 1.0F : 1.7F;
      const double scale = std::fabs(static_cast<double>(g)) / static_cast<double>(options.temperature);
      const auto gradient = reference::gradient(row, target, g, options);
      double total = 0;
      for (std::size_t j = 0; j < gradient.size(); ++j) {
        total += value_of(gradient[j]);
        // Only the target goes along with g.
        const bool against = value_of(gradient[j]) * static_cast<double>(g) <= 0;
        CHECK((against || j == static_cast<std::size_t>(target)));
      }
      // Ten levels of the tree, the reciprocal, two products and 1/T, each half a place.
      CHECK(std::fabs(total) <= scale * 16 * 0x1p-24);
    }
  }
}
