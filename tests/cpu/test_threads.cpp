// Any number of threads, shards, and any order of the rows.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/cpu/checks.hpp"
#include "tests/reference/row_generators.hpp"

using namespace bilogp;
using namespace bilogp::test;

TEST_SUITE_BEGIN("threads");

TEST_CASE("1 to 16 threads over many rows") {
  for (const Storage storage : all_storages)
    for (const std::int64_t rows : {16, 67}) {
      Batch batch = mixed_batch({.storage = storage, .columns = 1000, .rows = rows, .seed = 9});
      for (Runtime* runtime : levels())
        for (int threads = 1; threads <= 16 && !is_slow(*runtime); ++threads) {
          batch.options.threads = threads; // no part of the reference
          CAPTURE(threads);
          check_same(check_everything(batch, *runtime));
        }
    }
}

TEST_CASE("1 to 16 threads over the columns of few rows") {
  Runtime& runtime = *levels().front();
  for (const std::int64_t rows : {1, 2, 3})
    for (const Storage storage : all_storages) {
      Mix mix{.storage = storage, .columns = 100000, .rows = rows, .seed = static_cast<std::uint64_t>(rows)};
      Batch batch = mixed_batch(mix);
      for (const int threads : {1, 2, 3, 4, 5, 7, 8, 11, 13, 16}) {
        batch.options.threads = threads; // no part of the reference
        CAPTURE(threads);
        check_same(batch.check_forward(runtime));
        check_same(batch.check_backward(runtime, threads % 2 == 0));
        check_same(batch.check_with_gradient(runtime, threads % 2 == 1));
        if (threads % 4 == 0) check_same(batch.check_shards(runtime, {40000, 40001, 90000}));
      }
    }
}

TEST_CASE("threads over the columns of few rows, on every level") {
  for (Runtime* runtime : levels())
    for (const Storage storage : all_storages) {
      if (is_slow(*runtime) && storage == Storage::float32) continue;
      Batch batch = mixed_batch({.storage = storage, .columns = 100000, .rows = 2, .seed = 6});
      for (const int threads : {2, 5}) {
        batch.options.threads = threads; // no part of the reference
        check_same(batch.check_forward(*runtime));
        check_same(batch.check_backward(*runtime, threads == 2));
        check_same(batch.check_with_gradient(*runtime, threads == 5));
      }
    }
}

TEST_CASE("few wide rows of a vocabulary that ends early, split over threads") {
  Runtime& runtime = *levels().front();
  for (const std::int64_t vocab_size : {1, 5000, 66000, 99999})
    check_mix({.storage = Storage::float32,
               .columns = 100000,
               .rows = 2,
               .seed = static_cast<std::uint64_t>(vocab_size),
               .vocab_size = vocab_size,
               .threads = 8},
              runtime);
}

TEST_CASE("random shard cuts") {
  for (Runtime* runtime : levels()) {
    std::mt19937_64 random(17);
    for (const std::int64_t columns : {2, 3, 64, 65, 300, 1025, 3000}) {
      if (is_slow(*runtime) && columns > 300) continue;
      Batch batch = mixed_batch({.storage = all_storages[columns % 3], .columns = columns, .rows = 12, .seed = 21});
      for (const std::int64_t count : {1, 2, 3, 7, 20, 63, 120}) {
        const auto cuts = random_cuts(random, columns, count);
        CAPTURE(columns);
        CAPTURE(cuts.size());
        check_same(batch.check_shards(*runtime, cuts));
        check_same(batch.check_backward_shards(*runtime, cuts));
      }
    }
  }
}

TEST_CASE("one shard per column") {
  for (const std::int64_t columns : {2, 31, 64, 100}) {
    std::vector<std::int64_t> cuts(static_cast<std::size_t>(columns - 1));
    std::iota(cuts.begin(), cuts.end(), 1);
    for (const Storage storage : all_storages) {
      Batch batch = mixed_batch({.storage = storage, .columns = columns, .seed = 4});
      check_same(batch.check_shards(*levels().front(), cuts));
      check_same(batch.check_backward_shards(*levels().front(), cuts));
    }
  }
}

TEST_CASE("shards of a vocabulary that ends inside one of them") {
  for (const std::int64_t vocab_size : {1, 99, 100, 101, 299, 300, 511})
    for (const Storage storage : all_storages) {
      Batch batch = mixed_batch({.storage = storage, .columns = 512, .rows = 14, .seed = 8, .vocab_size = vocab_size});
      check_same(check_everything(batch, *levels().front(), {100, 300, 301, 400}));
    }
}

TEST_CASE("permutations and parts of a batch") {
  for (Runtime* runtime : levels()) {
    const std::int64_t columns = is_slow(*runtime) ? 90 : 900;
    std::vector<std::size_t> order(130);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937_64 random(23);
    for (const std::size_t rows : {130U, 77U, 17U, 16U, 3U, 1U}) {
      Batch batch(Storage::bfloat16, columns);
      std::shuffle(order.begin(), order.end(), random);
      for (std::size_t i = 0; i < rows;
           ++i) { // a row depends on its number only, so that every order has the same ones
        const auto kinds = reference::all_kinds();
        auto row = reference::make_row(kinds[order[i] % kinds.size()], columns, Storage::bfloat16, order[i]);
        batch.add(std::move(row), {static_cast<std::int64_t>(order[i]) % columns}, 0.5F);
      }
      check_same(check_everything(batch, *runtime));
    }
  }
}

TEST_SUITE_END();
