// Every kernel of the plain plan on every kind of row.
#include <doctest/doctest.h>

#include <random>

#include "tests/gpu_model/model_batch.hpp"

using namespace gpu_model;

TEST_SUITE_BEGIN("operators");

static void check(const std::string& difference) {
  CHECK_MESSAGE(difference.empty(), difference);
}

TEST_CASE("every kind of row, a few tiles wide") {
  for (const Storage storage : all_storages)
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
      check(check_shape({.storage = storage, .columns = 2500, .seed = seed}, {700, 1024, 2305}));
}

TEST_CASE("every kind of row, one block wide and less") {
  for (const Storage storage : all_storages)
    for (const std::int64_t columns : {100, 130, 300})
      check(check_shape({.storage = storage, .columns = columns}, {64}));
}

TEST_CASE("every kind of row at other temperatures") {
  for (const Storage storage : all_storages) {
    check(check_shape({.storage = storage, .columns = 1300, .row_temperatures = true}, {600}));
    check(check_shape({.storage = storage, .columns = 1300, .seed = 2, .temperature = 0.6F}, {600}));
  }
}

// Rows whose largest magnitude lies on either side of what plain sums of a tile take, |x| * c = 115.
TEST_CASE("magnitudes around the limit of plain sums") {
  std::mt19937_64 random(8);
  for (const Storage storage : all_storages)
    for (const float temperature : {1.0F, 0.5F, 3.0F}) {
      std::vector<std::vector<std::uint32_t>> rows;
      for (const double limit : {76.0, 79.0, 79.7, 80.0, 81.0, 84.0, 87.0, 88.5, 91.0}) {
        std::uniform_real_distribution<double> logit(-limit * temperature, limit * temperature);
        std::vector<std::uint32_t> row(1100);
        for (std::uint32_t& bits : row) bits = reference::representable(storage, logit(random));
        for (const std::int64_t side : {-1, 1}) // one that is the largest, once far down and once up
          row[random() % 1000] = reference::representable(storage, static_cast<double>(side) * limit * temperature);
        rows.push_back(std::move(row));
      }
      BatchShape shape{.storage = storage, .columns = 1100, .seed = random() % 1000, .temperature = temperature};
      check(ModelBatch(shape, rows).check_everything({1024}));
    }
}

TEST_CASE("a vocabulary of a real size") {
  check(check_shape({.storage = Storage::bfloat16, .columns = 49152, .rows = 3, .seed = 4}, {12288, 24576, 36864}));
  check(check_shape({.storage = Storage::float16, .columns = 50257, .rows = 2, .seed = 5}, {25129},
                    {.columns_per_block = 8192}));
}

// Native numerics promise no particular bits, but the same ones however a row is cut.
TEST_CASE("native numerics do not depend on cuts") {
  BatchShape shape{.columns = 2500, .seed = 3, .build = Build::native};
  ModelBatch batch(shape);
  ModelBatch::Answers whole;
  REQUIRE(batch.forward({}, whole).empty());
  CHECK(!batch.compare("native", whole).empty()); // else the kernel is the portable one
  for (const std::int64_t per_block : {1024, 2048}) {
    ModelBatch::Answers split;
    REQUIRE(batch.forward({.columns_per_block = per_block}, split).empty());
    CHECK(split.logp == whole.logp);
    CHECK(split.lse == whole.lse);
    CHECK(split.state == whole.state);
  }
  for (const std::vector<std::int64_t>& cuts : {std::vector<std::int64_t>{1, 2, 1025}, {500, 900, 2048, 2499}}) {
    ModelBatch::Answers joined;
    REQUIRE(batch.shards(cuts, {}, joined).empty());
    CHECK(joined.logp == whole.logp);
    CHECK(joined.lse == whole.lse);
    CHECK(joined.state == whole.state);
  }
}

TEST_SUITE_END();
