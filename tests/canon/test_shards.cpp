// Shards: wherever the cuts are, the lists join to the root.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <stdexcept>

#include "tests/reference/canon_reference.hpp"
#include "tests/reference/compare.hpp"
#include "tests/reference/row_generators.hpp"

namespace reference = bilogp::reference;
using reference::RowKind;
using reference::Storage;

namespace {

std::vector<reference::ShardList> cut(std::span<const std::uint32_t> row, const std::vector<std::int64_t>& bounds,
                                      const reference::RowOptions& options) {
  const auto columns = static_cast<std::int64_t>(row.size());
  std::vector<reference::ShardList> shards;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const std::int64_t begin = bounds[i];
    const std::int64_t end = bounds[i + 1];
    const auto part = row.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    shards.push_back({begin, end, reference::shard_nodes(part, begin, end, columns, options)});
  }
  return shards;
}

std::vector<std::int64_t> random_bounds(std::int64_t columns, std::size_t shards, std::mt19937_64& random) {
  std::vector<std::int64_t> bounds{0, columns};
  while (bounds.size() < shards + 1)
    bounds.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(columns)));
  std::sort(bounds.begin(), bounds.end());
  return bounds; // repeated bounds are empty shards
}

reference::Node recursive_sum(std::span<const std::uint32_t> row, std::int64_t begin, std::int64_t size,
                              const reference::RowOptions& options) {
  const auto columns = static_cast<std::int64_t>(row.size());
  if (begin >= columns) return {};
  if (size == 1) return reference::sum(row.subspan(static_cast<std::size_t>(begin), 1), begin, options);
  return reference::add(recursive_sum(row, begin, size / 2, options),
                        recursive_sum(row, begin + size / 2, size / 2, options));
}

} // namespace

TEST_CASE("the sum is the contract's recursion") {
  for (const std::int64_t columns : {1, 2, 3, 5, 8, 31, 33, 100, 255, 256, 257, 1000}) {
    for (const RowKind kind : reference::all_kinds()) {
      CAPTURE(columns);
      CAPTURE(reference::to_string(kind));
      const auto row = reference::make_row(kind, columns, Storage::float32, 17);
      reference::RowOptions options;
      options.vocab_size = (columns + 1) / 2;
      const auto padded = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(columns)));
      CHECK(reference::sum(row, 0, {}) == recursive_sum(row, 0, padded, {}));
      CHECK(reference::sum(row, 0, options) == recursive_sum(row, 0, padded, options));
    }
  }
}

TEST_CASE("shards cut anywhere join to the root") {
  std::mt19937_64 random(15);
  for (const std::int64_t columns : {1, 2, 3, 7, 16, 100, 127, 128, 129, 1000, 3000}) {
    for (const RowKind kind : reference::all_kinds()) {
      CAPTURE(columns);
      CAPTURE(reference::to_string(kind));
      const auto row = reference::make_row(kind, columns, Storage::float16, 18);
      reference::RowOptions options;
      if (random() % 2 == 0)
        options.vocab_size = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(columns));
      const reference::Node root = reference::sum(row, 0, options);
      for (const std::size_t shards : {1U, 2U, 3U, 8U, 16U}) {
        const auto bounds = random_bounds(columns, shards, random);
        const auto joined = reference::join_shards(cut(row, bounds, options), columns);
        CHECK_MESSAGE(joined == root, reference::to_string(joined));
      }
    }
  }
}

TEST_CASE("real widths in tensor-parallel cuts") {
  const std::int64_t columns = 49152;
  for (const RowKind kind : {RowKind::chained_ties_filled, RowKind::normal_5, RowKind::masked_third}) {
    const auto row = reference::make_row(kind, columns, Storage::bfloat16, 19);
    const reference::Node root = reference::sum(row, 0, {});
    for (const std::int64_t shards : {2, 3, 4, 8}) {
      std::vector<std::int64_t> bounds;
      for (std::int64_t i = 0; i <= shards; ++i) bounds.push_back(i * columns / shards);
      CHECK(reference::join_shards(cut(row, bounds, {}), columns) == root);
    }
  }
}

TEST_CASE("the lists are maximal aligned sub-trees") {
  const std::vector<std::uint32_t> row(10, 0x3f800000);
  const auto count = [&](std::int64_t begin, std::int64_t end) {
    const auto part = std::span(row).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    return reference::shard_nodes(part, begin, end, 10, {}).size();
  };
  CHECK(count(0, 10) == 1); // the whole tree of 16
  CHECK(count(0, 8) == 1);
  CHECK(count(8, 10) == 1); // with the padding: columns 8 to 15
  CHECK(count(9, 10) == 3); // 9, 10 to 11, 12 to 15: the padding is part of the last list
  CHECK(count(1, 7) == 4);  // 1, 2 to 3, 4 to 5, 6
  CHECK(count(3, 3) == 0);
}

TEST_CASE("shards that do not cover the row are refused") {
  const std::vector<std::uint32_t> row(10, 0x3f800000);
  auto shards = cut(row, {0, 4, 10}, {});
  shards.pop_back();
  CHECK_THROWS_AS(reference::join_shards(shards, 10), std::invalid_argument);
}
