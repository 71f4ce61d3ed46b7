// Widths, alignments, strides, options and launches of all kinds.
#include <doctest/doctest.h>

#include <random>
#include <set>

#include "tests/gpu_model/model_batch.hpp"

using namespace gpu_model;

TEST_SUITE_BEGIN("shapes");

static void check(const std::string& difference) {
  CHECK_MESSAGE(difference.empty(), difference);
}

static std::vector<std::int64_t> random_cuts(std::mt19937_64& random, std::int64_t columns, int count) {
  std::set<std::int64_t> cuts;
  for (int i = 0; i < count && columns > 1; ++i)
    cuts.insert(1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(columns - 1)));
  return {cuts.begin(), cuts.end()};
}

TEST_CASE("every small width") {
  std::mt19937_64 random(1);
  for (std::int64_t columns = 1; columns <= 70; ++columns) {
    BatchShape shape{.storage = all_storages[columns % 3], .columns = columns, .rows = 3};
    shape.seed = static_cast<std::uint64_t>(columns);
    shape.build = columns % 2 == 0 ? Build::narrow_ids : Build::wide_ids;
    shape.offset = columns % 5;
    check(check_shape(shape, random_cuts(random, columns, 2)));
  }
}

TEST_CASE("widths on either side of the sizes that a plan cuts at") {
  std::mt19937_64 random(2);
  for (const std::int64_t size : {128, 256, 512, 1024, 2048, 4096})
    for (const std::int64_t columns : {size - 1, size, size + 1})
      for (const Storage storage : all_storages) {
        BatchShape shape{.storage = storage, .columns = columns, .rows = 2};
        shape.seed = static_cast<std::uint64_t>(columns) + 7;
        check(check_shape(shape, random_cuts(random, columns, 1)));
      }
}

TEST_CASE("rows at every alignment") {
  std::mt19937_64 random(3);
  for (const Storage storage : all_storages)
    for (std::int64_t offset = 0; offset < 8; ++offset) {
      BatchShape shape{.storage = storage, .columns = 2300 + offset, .rows = 3};
      shape.seed = static_cast<std::uint64_t>(offset) + 11;
      shape.offset = offset;
      shape.row_padding = offset % 3 * 5;
      check(check_shape(shape, random_cuts(random, shape.columns, 2)));
    }
}

TEST_CASE("aligned rows with padding columns, temperatures and two strides") {
  std::mt19937_64 random(4);
  const float temperatures[] = {0.7F, 2, 0x1p-20F, 0x1p20F, 0.01F, 1};
  int turn = 0;
  for (const Storage storage : all_storages)
    for (const float temperature : temperatures) {
      BatchShape shape{.storage = storage, .columns = 1600, .rows = 7};
      shape.seed = static_cast<std::uint64_t>(++turn);
      shape.temperature = temperature;
      shape.row_temperatures = turn % 3 == 0;
      shape.vocab_size = turn % 4 == 0 ? 1 + turn : 1100 + turn;
      shape.inner_rows = 3;
      check(check_shape(shape, random_cuts(random, shape.columns, 3)));
    }
}

TEST_CASE("several ids per row") {
  for (const std::int64_t ids : {2, 31, 32, 33, 100})
    for (const Build build : {Build::wide_ids, Build::narrow_ids}) {
      BatchShape shape{.columns = 777, .rows = 4, .ids_per_row = ids, .build = build};
      shape.seed = static_cast<std::uint64_t>(ids);
      check(check_shape(shape, {}));
      check(check_shape(shape, {}, {.columns_per_block = 1024}));
    }
}

TEST_CASE("rows split over blocks, and grids that are too small or too large") {
  for (const Storage storage : all_storages)
    for (const std::int64_t per_block : {1024, 2048}) {
      BatchShape shape{.storage = storage, .columns = 9000, .rows = 5, .build = Build::narrow_ids};
      shape.seed = static_cast<std::uint64_t>(per_block) + 3;
      shape.vocab_size = per_block == 1024 ? 5000 : -1;
      check(check_shape(shape, {3000}, {.columns_per_block = per_block}));
      check(check_shape(shape, {3000, 3001, 8192}, {.blocks = 2, .columns_per_block = per_block}));
      check(check_shape(shape, {}, {.blocks = 60}));
    }
}

TEST_CASE("one block for all rows") {
  for (const Storage storage : all_storages)
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
      check(check_shape({.storage = storage, .columns = 1500, .seed = seed}, {1, 700, 1025}, {.blocks = 1}));
}

TEST_CASE("more tiles than one chunk holds") {
  BatchShape shape{.storage = Storage::float32, .columns = 131072 + 700, .rows = 2, .seed = 9};
  check(check_shape(shape, {65536, 70001}));
  shape.columns = 131072;
  shape.offset = 1;
  check(check_shape(shape, {1024}));
}

TEST_CASE("many shards") {
  std::mt19937_64 random(5);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    BatchShape shape{.storage = all_storages[seed % 3], .columns = 3000, .rows = 6, .seed = seed};
    check(check_shape(shape, random_cuts(random, shape.columns, 20)));
  }
}

TEST_SUITE_END();
