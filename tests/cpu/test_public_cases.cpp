// Cases P2 to P7 that any such library should pass: extreme rows, accuracy. On this machine's own level.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/cpu/public_cases.hpp"
#include "tests/reference/row_generators.hpp"

using namespace bilogp;
using namespace bilogp::test;
using reference::representable;

namespace {

constexpr std::uint32_t minus_infinity = 0xff800000;
const float one = 1;
Runtime& here = Runtime::get("cpu");

std::vector<std::uint32_t> constant_row(std::int64_t columns, float value) {
  return std::vector<std::uint32_t>(static_cast<std::size_t>(columns), std::bit_cast<std::uint32_t>(value));
}

TensorView expanded(const float& value, std::int64_t rows) {
  return TensorView::strided(&value, DType::float32, {rows}, {0});
}

float as_float(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

} // namespace

TEST_SUITE_BEGIN("public cases");

TEST_CASE("P2 one finite column") {
  constexpr std::int64_t columns = 100000;
  for (const std::int64_t target : {50000, 0, 17, 49999, 99968, 99999}) {
    auto row = std::vector<std::uint32_t>(columns, minus_infinity);
    row[static_cast<std::size_t>(target)] = std::bit_cast<std::uint32_t>(10.0F);
    Rows rows(Storage::float32, columns);
    rows.add(row);
    const Scores scores = score(here, rows.view(), {target});
    CHECK(scores.logp[0] == 0);
    const auto grad = gradient(here, rows.view(), {target}, scores, expanded(one, 1));
    for (std::size_t j = 0; j < columns; ++j) {
      float value = 1;
      std::memcpy(&value, grad.data() + 4 * j, 4);
      if (value != 0) FAIL("column " << j << " has gradient " << value);
    }
  }
}

TEST_CASE("P3 columns behind the end do not count") {
  for (const std::int64_t columns : {151937, 1, 2, 31, 33, 127, 129, 4095, 4097}) {
    for (const Storage storage : all_storages) {
      if (columns > 100000 && storage == Storage::float16) continue; // one compile less
      auto row = constant_row(columns, -40);
      row[static_cast<std::size_t>(columns / 2)] = 0;
      Rows rows(storage, columns);
      rows.add(row);
      const Scores scores = score(here, rows.view(), {columns / 2});
      CHECK(std::abs(as_float(scores.logp[0])) < 1e-11);
    }
  }
}

TEST_CASE("P4 offsets") {
  constexpr std::int64_t columns = 128256;
  for (const float offset : {0.0F, 100.0F, 1e4F, -1e4F}) {
    Rows rows(Storage::float32, columns);
    rows.add(constant_row(columns, offset));
    const Scores scores = score(here, rows.view(), {777});
    CHECK(std::abs(static_cast<double>(as_float(scores.logp[0])) + std::log(128256.0)) <= 2 * 0x1p-20); // 2 ulp
  }
  std::mt19937_64 random(4);
  for (int r = 0; r < 4; ++r) {
    std::vector<std::uint32_t> row;
    for (int j = 0; j < 3; ++j)
      row.push_back(
          std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-53 - 1e7)));
    Rows rows(Storage::float32, 3);
    rows.add(row);
    const double exact = logp_in_double(row, 1);
    const auto got = static_cast<double>(as_float(score(here, rows.view(), {1}).logp[0]));
    CHECK(std::abs(got - exact) <= 1e-6 + 4 * 0x1p-23 * std::abs(exact));
  }
}

TEST_CASE("P5 temperature") {
  const std::vector<float> logits = {2, 1, 0};
  std::vector<float> given = logits;
  const auto view = TensorView::contiguous(given.data(), DType::float32, {1, 3});
  LogpOptions options;
  options.temperature = 0.5;
  const Scores scores = score(here, view, {1}, options);
  CHECK(std::abs(as_float(scores.logp[0]) + 2.142932F) < 1e-6F);
  CHECK(given == logits);
  for (const double bad :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    options.temperature = bad;
    CHECK_THROWS_AS(score(here, view, {1}, options), Error);
  }
}

TEST_CASE("P6 ignored rows") {
  constexpr std::int64_t columns = 500;
  Rows rows(Storage::bfloat16, columns);
  for (std::uint64_t r = 0; r < 6; ++r)
    rows.add(reference::make_row(reference::RowKind::normal_5, columns, Storage::bfloat16, r));
  const std::vector<std::int64_t> ids = {3, 4, 5, 6, 7, 8};
  const Scores before = score(here, rows.view(), ids);
  const auto gradient_before = gradient(here, rows.view(), ids, before, expanded(one, 6));
  const auto size = static_cast<std::size_t>(rows.row_bytes());
  for (const std::uint16_t poison : {std::uint16_t(0x7fc0), std::uint16_t(0x7f80), std::uint16_t(0xff80)}) {
    Rows poisoned = rows;
    for (std::size_t at = 2 * size; at < 3 * size; at += 2) std::memcpy(poisoned.bytes.data() + at, &poison, 2);
    const std::vector<std::int64_t> some = {3, 4, -100, 6, 7, 8};
    const Scores scores = score(here, poisoned.view(), some);
    const auto grad = gradient(here, poisoned.view(), some, scores, expanded(one, 6));
    CHECK(scores.logp[2] == 0);
    const std::vector<char> zeros(size);
    for (std::size_t r = 0; r < 6; ++r) {
      const char* right = r == 2 ? zeros.data() : gradient_before.data() + r * size;
      CHECK(std::memcmp(grad.data() + r * size, right, size) == 0);
      if (r != 2) CHECK(scores.logp[r] == before.logp[r]);
    }
    const std::vector<std::int64_t> none(6, -100);
    const Scores ignored = score(here, poisoned.view(), none);
    CHECK(ignored.logp == std::vector<std::uint32_t>(6));
    CHECK(gradient(here, poisoned.view(), none, ignored, expanded(one, 6)) == std::vector<char>(6 * size));
  }
}

TEST_CASE("P7 a confident target's gradient in bfloat16") {
  constexpr std::int64_t columns = 32000;
  for (const float lead : {12.5F, 15.0F, 17.25F}) {
    auto row = constant_row(columns, 0);
    row[123] = representable(Storage::bfloat16, static_cast<double>(lead));
    Rows rows(Storage::bfloat16, columns);
    rows.add(row);
    const auto grad = gradient(here, rows.view(), {123}, score(here, rows.view(), {123}), expanded(one, 1));
    std::uint16_t stored = 0;
    std::memcpy(&stored, grad.data() + 246, 2);
    const auto got = static_cast<double>(as_float(reference::widen(Storage::bfloat16, &stored)));
    const double exact = -std::expm1(logp_in_double(row, 123));
    CHECK(std::abs(got - exact) <= 0.005 * exact);
  }
}

TEST_SUITE_END();
