// Results by close logarithms: what they give is what the definition gives, or they leave it to the definition. All
// operations are rounded as on a device, so what holds here holds there.
#include "canon/finish.h"
#include "device/gpu/close_log2.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace {

// How far a close d may be from the defined one.
double distance(double d) {
  return 0x1p-48 + 0x1p-51 * std::abs(d);
}

struct Tally {
  long found = 0, left = 0, wrong = 0;
  double farthest = 0; // in distances
  // What was `close` to the `defined` number gave `result`, or nothing; `right` is the definition's result.
  void add(double close, double defined, bool is_given, float result, double right) {
    farthest = std::max(farthest, std::abs(close - defined) / distance(close));
    if (!is_given) {
      ++left;
      return;
    }
    ++found;
    wrong += canon::bits_from_float(result) == canon::bits_from_float((float)right) ? 0 : 1;
  }
  void add(double close, double defined) {
    float result = 0;
    const bool is_given = canon::one_result(close, result);
    add(close, defined, is_given, result, defined * canon::inverse_log2_e);
  }
  // Results by pieces, whose distance is that of the result.
  void add_by_pieces(double close, int exponent, double defined) {
    const double right = defined * canon::inverse_log2_e;
    float result = 0;
    const bool is_given = canon::one_rounding(close, exponent, result);
    add(close, right, is_given, result, right);
  }
};

float between(std::mt19937& random, float low, float high) {
  const u32 begin = canon::bits_from_float(low), end = canon::bits_from_float(high);
  return canon::float_from_bits(begin + (u32)(random() % (end - begin)));
}
// Every fourth leaf is all of the sum, or close to all.
float leaf_of(std::mt19937& random, int i, float m) {
  return i % 4 != 0 ? between(random, 0.7071f, 1.4143f) : m < 1.4142f ? m : 0.5f * m;
}

// `exponents` powers of two between a leaf p and a sum m, from `first` on.
Tally tally_of(int first, int exponents, int count) {
  std::mt19937 random(9);
  Tally tally;
  for (int i = 0; i < count; ++i) {
    const float m = between(random, 1.0f, 2.0f);
    const float p = leaf_of(random, i, m);
    const double exponent = first + (int)(random() % (unsigned)exponents);
    tally.add(exponent + (canon::close_log2(p) - canon::close_log2(m)),
              exponent + canon::log2_canon((double)p / (double)m));
    tally.add(exponent + canon::close_log2(m), exponent + canon::log2_canon((double)m));
  }
  return tally;
}

} // namespace

TEST_SUITE_BEGIN("close_log2");

TEST_CASE("ordinary rows: right, and hardly any is left") {
  const Tally tally = tally_of(-60, 55, 400000);
  CHECK(tally.wrong == 0);
  CHECK(tally.farthest < 0.75);
  CHECK(tally.left < tally.found / 10000);
}

TEST_CASE("results near 0 and far from it are right where they are given") {
  for (const int first : {-2, -1, 0, 1, -1000000, 1 << 29}) {
    const Tally tally = tally_of(first, 2, 100000);
    CAPTURE(first);
    CHECK(tally.wrong == 0);
    CHECK(tally.farthest < 0.75);
    CHECK(tally.found > 0);
  }
}

TEST_CASE("what could round either way is left") {
  for (const float result : {-0x1.8p-10f, -0.5f, -1.7f, -12.3f, 88.8f, -1e6f}) {
    const double next = std::nextafter(result, 1e9f), between = ((double)result + next) / 2;
    const double d = between / canon::inverse_log2_e;
    for (const double side : {-1.0, 0.0, 1.0}) {
      float given = 0;
      CHECK_FALSE(canon::one_result(d + side * distance(d), given));
    }
  }
}

namespace {

// The same for results by pieces.
Tally piece_tally_of(int first, int exponents, int count) {
  std::mt19937 random(10);
  Tally tally;
  for (int i = 0; i < count; ++i) {
    // Ends of pieces, too.
    float m = between(random, 1.0f, 2.0f);
    if (i % 8 == 1) m = canon::float_from_bits((canon::bits_from_float(m) & ~0x3ffffu) | (i % 16 == 1 ? 0x3ffffu : 0u));
    const canon::LogPiece piece = canon::log_piece(canon::log_piece_of(m));
    const float p = leaf_of(random, i, m);
    const int exponent = first + (int)(random() % (unsigned)exponents);
    tally.add_by_pieces(canon::close_result(exponent, canon::close_log2(p) * canon::inverse_log2_e, -1.0, m, piece),
                        exponent, exponent + canon::log2_canon((double)p / (double)m));
    tally.add_by_pieces(canon::close_result(exponent, 0.0, 1.0, m, piece), exponent,
                        exponent + canon::log2_canon((double)m));
  }
  return tally;
}

} // namespace

TEST_CASE("results by pieces: right, and hardly any is left") {
  const Tally tally = piece_tally_of(-60, 55, 400000);
  CHECK(tally.wrong == 0);
  CHECK(tally.farthest < 1.5);
  CHECK(tally.left < tally.found / 10000);
}

TEST_CASE("results by pieces near 0 and far from it are right where they are given") {
  for (const int first : {-2, -1, 0, 1, -1000000, 1 << 29}) {
    const Tally tally = piece_tally_of(first, 2, 100000);
    CAPTURE(first);
    CHECK(tally.wrong == 0);
    CHECK(tally.farthest < 1.5);
    CHECK(tally.found > 0);
  }
}

TEST_SUITE_END();
