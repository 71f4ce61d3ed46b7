// Widening and narrowing, checked with binary64 values instead of the bit manipulation under test.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/reference/canon_reference.hpp"

namespace reference = bilogp::reference;
using reference::Storage;

namespace {

struct Format {
  Storage storage;
  int fraction_bits;
  int exponent_bits;
  std::uint16_t quiet_nan;
};
constexpr Format float16{Storage::float16, 10, 5, 0x7e00};
constexpr Format bfloat16{Storage::bfloat16, 7, 8, 0x7fc0};

// The value by the IEEE definition.
double defined_value(const Format& format, std::uint16_t bits) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int exponent = (bits >> format.fraction_bits) & ((1 << format.exponent_bits) - 1);
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << format.exponent_bits) - 1)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - format.fraction_bits);
  return sign * std::ldexp((1 << format.fraction_bits) + fraction, exponent - bias - format.fraction_bits);
}

// Nearest of the 16-bit values, ties to the even pattern, found by bisection among the magnitudes.
std::uint16_t nearest(const Format& format, float value) {
  if (std::isnan(value)) return format.quiet_nan;
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  const auto infinity = static_cast<std::uint16_t>(((1 << format.exponent_bits) - 1) << format.fraction_bits);
  std::uint16_t low = 0;
  std::uint16_t high = infinity;
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (defined_value(format, middle) <= magnitude ? low : high) = middle;
  }
  if (std::isinf(value)) return sign | infinity;
  const double below = defined_value(format, low);
  // Beyond the largest value the grid goes on as if the exponent range did.
  const double above = high == infinity ? 2 * below - defined_value(format, static_cast<std::uint16_t>(low - 1))
                                        : defined_value(format, high);
  const double middle = (below + above) / 2;
  const bool up = magnitude > middle || (magnitude == middle && low % 2 != 0);
  return sign | (up ? high : low);
}

void check_all_patterns(const Format& format) {
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const double expected = defined_value(format, bits);
    const std::uint32_t wide = reference::widen(format.storage, &bits);
    const float got = std::bit_cast<float>(wide);
    CAPTURE(pattern);
    if (std::isnan(expected)) {
      REQUIRE(std::isnan(got));
      REQUIRE(reference::narrow(format.storage, wide) == format.quiet_nan);
      continue;
    }
    REQUIRE(static_cast<double>(got) == expected);
    REQUIRE(std::signbit(got) == std::signbit(expected));
    REQUIRE(reference::narrow(format.storage, wide) == pattern);
  }
}

void check_narrow(const Format& format, std::uint32_t bits) {
  const std::uint32_t expected = nearest(format, std::bit_cast<float>(bits));
  if (reference::narrow(format.storage, bits) == expected) return;
  CAPTURE(bits);
  CHECK(reference::narrow(format.storage, bits) == expected);
}

} // namespace

TEST_CASE("every float16 and bfloat16 widens to its value and comes back") {
  check_all_patterns(float16);
  check_all_patterns(bfloat16);
}

TEST_CASE("narrowing rounds to nearest even, at and beside every midpoint") {
  for (const Format& format : {float16, bfloat16}) {
    for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
      const auto bits = static_cast<std::uint16_t>(pattern);
      const std::uint32_t wide = reference::widen(format.storage, &bits);
      if (!std::isfinite(std::bit_cast<float>(wide))) continue;
      const double value = defined_value(format, bits);
      const auto next_bits = static_cast<std::uint16_t>(bits + 1);
      const double next = defined_value(format, next_bits);
      if (!std::isfinite(next)) continue;
      const auto middle = std::bit_cast<std::uint32_t>(static_cast<float>((value + next) / 2));
      for (const std::uint32_t offset : {0xffffffffU, 0U, 1U}) check_narrow(format, middle + offset);
    }
    for (const std::uint32_t bits :
         {0x7f7fffffU, 0x477fefffU, 0x477ff000U, 0x7f7f7fffU, 0x7f7f8000U, 0x33000000U, 0x33000001U, 0x1U, 0x80000001U,
          0x7f800000U, 0xff800000U, 0x7f800001U, 0xffffffffU})
      check_narrow(format, bits);
  }
}

TEST_CASE("narrowing of random binary32 values") {
  std::mt19937_64 random(11);
  for (int i = 0; i < 2'000'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    check_narrow(float16, bits);
    check_narrow(bfloat16, bits);
    check_narrow(float16, (bits & 0x8fffffffU) | 0x30000000U); // around float16's own range
  }
}

TEST_CASE("float32 narrows to itself, NaNs to the quiet one") {
  CHECK(reference::narrow(Storage::float32, 0x00000001) == 0x00000001);
  CHECK(reference::narrow(Storage::float32, 0xff800000) == 0xff800000);
  CHECK(reference::narrow(Storage::float32, 0xff800001) == 0x7fc00000);
}
