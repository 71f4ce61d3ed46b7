// The tools of the other suites: generated rows are what their kinds say, and differences are reported readably.
#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include "tests/reference/compare.hpp"
#include "tests/reference/row_generators.hpp"

namespace reference = bilogp::reference;
using reference::RowKind;
using reference::Storage;

namespace {

constexpr std::uint32_t quiet_nan = 0x7fc00000;
const std::vector<Storage> storages{Storage::float32, Storage::float16, Storage::bfloat16};

} // namespace

TEST_CASE("rows hold only what their storage type can") {
  for (const Storage storage : storages) {
    for (const RowKind kind : reference::all_kinds()) {
      CAPTURE(reference::to_string(storage));
      CAPTURE(reference::to_string(kind));
      const auto row = reference::make_row(kind, 77, storage, 21);
      REQUIRE(row.size() == 77);
      CHECK(row == reference::make_row(kind, 77, storage, 21));
      if (storage == Storage::float32) continue;
      const auto stored = reference::to_16_bits(storage, row);
      for (std::size_t j = 0; j < row.size(); ++j) REQUIRE(reference::widen(storage, &stored[j]) == row[j]);
    }
  }
}

TEST_CASE("poison and zero rows are what their kinds say") {
  const std::int64_t id = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const Storage storage : storages) {
      const auto state = [&](RowKind kind) {
        return reference::score(reference::make_row(kind, 100, storage, seed), {&id, 1}, {}).state;
      };
      CHECK(state(RowKind::nan_somewhere) == reference::Node{quiet_nan, 0});
      CHECK(state(RowKind::plus_inf_somewhere) == reference::Node{quiet_nan, 0});
      CHECK(state(RowKind::masked_all) == reference::Node{});
      CHECK(state(RowKind::masked_all_but_one).m_bits >= 0x3f800000);
    }
  }
}

TEST_CASE("differences are reported with row and column") {
  const std::vector<std::uint32_t> one{1, 2, 3, 0x3f800000, 5, 0x7fc00000};
  std::vector<std::uint32_t> two = one;
  CHECK(reference::compare_bits(one, two, 3).none());
  two[3] = 0x40000000;
  two[5] = 0xffc00000;
  const auto difference = reference::compare_bits(one, two, 3);
  CHECK(difference.count == 2);
  CHECK(difference.first == 3);
  CHECK(difference.report.find("row 1, column 0: got 0x3f800000 (1), expected 0x40000000 (2)") != std::string::npos);
  CHECK(reference::compare_bits(one, two, 3, reference::NanRule::any_payload).count == 1);
  CHECK_FALSE(reference::compare_bits(one, std::span(two).first(5)).none());
  const std::vector<std::uint16_t> half{0x3c00};
  const std::vector<std::uint16_t> other{0x4000};
  const auto halves = reference::compare_bits<std::uint16_t>(Storage::float16, half, other);
  CHECK(halves.report.find("got 0x3c00 (1), expected 0x4000 (2)") != std::string::npos);
}
