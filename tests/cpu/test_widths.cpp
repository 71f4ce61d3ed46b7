// Vocabularies of every small width, around powers of two, and those that are constants of their kernels.
#include "tests/cpu/checks.hpp"

using namespace bilogp;
using namespace bilogp::test;

TEST_SUITE_BEGIN("widths");

TEST_CASE("every width from 1 to 300") {
  for (Runtime* runtime : levels()) {
    const std::int64_t step = is_slow(*runtime) ? 7 : 1;
    for (std::int64_t columns = 1; columns <= 300; columns += step) {
      const auto seed = static_cast<std::uint64_t>(columns);
      Mix mix{.storage = all_storages[columns % 3], .columns = columns, .seed = seed};
      if (columns % 4 == 0) mix.temperature = 0.7;
      if (columns % 5 == 0) mix.temperatures = Temperatures::per_row_with_bad;
      if (columns % 7 == 0) mix.layout = {5, 1};
      if (columns % 2 == 0) mix.id_dtype = DType::int32;
      if (columns % 11 == 0) mix.vocab_size = columns - 9;
      check_mix(mix, *runtime, columns % 3 == 1 ? 3 : 0);
    }
  }
}

TEST_CASE("a row width on either side of a power of two, up to 4096") {
  for (Runtime* runtime : levels())
    for (std::int64_t power = 2; power <= (is_slow(*runtime) ? 512 : 2048); power *= 2)
      for (const std::int64_t columns : {power - 1, power, power + 1})
        for (const Storage storage : all_storages)
          check_mix({.storage = storage, .columns = columns, .rows = 9, .seed = static_cast<std::uint64_t>(columns)},
                    *runtime, 2);
}

// The forward pass of a shard takes any width at run time: one cut reaches those kernels up to 2^17 columns.
TEST_CASE("run-time widths on either side of a power of two, up to 2^17") {
  Runtime& runtime = *levels().front();
  for (std::int64_t power = 4096; power <= 131072; power *= 2)
    for (const std::int64_t columns : {power - 1, power, power + 1}) {
      const Mix mix{.storage = all_storages[power / 4096 % 3], .columns = columns, .rows = 3, .seed = 5};
      Batch batch = mixed_batch(mix);
      std::mt19937_64 random(mix.seed);
      check_same(batch.check_shards(runtime, random_cuts(random, columns, 3)));
      check_same(batch.check_shards(runtime, {}));
    }
}

TEST_CASE("backward on either side of a power of two, up to 2^17") {
  Runtime& runtime = *levels().front();
  for (std::int64_t power = 4096; power <= 131072; power *= 4)
    for (const std::int64_t columns : {power - 1, power, power + 1}) {
      Batch batch = mixed_batch({.storage = all_storages[power % 3], .columns = columns, .rows = 2, .seed = 6});
      check_same(batch.check_backward(runtime, false));
      check_same(batch.check_backward_shards(runtime, {columns / 3}));
    }
}

TEST_CASE("widths that are constants of their kernels") {
  const std::int64_t widths[] = {4096, 8191, 32000, 32768, 49152, 50257, 65537, 100000, 128256, 151936};
  for (Runtime* runtime : levels()) {
    if (is_slow(*runtime)) continue;
    const bool own = runtime == levels().front();
    std::size_t turn = 0;
    for (const std::int64_t columns : widths) {
      ++turn;
      if (!own && turn % 4 != 1) continue; // compiling takes longest
      Mix mix{.storage = Storage::bfloat16, .columns = columns, .rows = 2, .seed = turn};
      Batch batch = mixed_batch(mix);
      check_same(check_everything(batch, *runtime, {columns / 3, columns - 1}));
      mix.storage = turn % 2 == 0 ? Storage::float16 : Storage::float32;
      if (own && turn <= 4) check_same(mixed_batch(mix).check_forward(*runtime));
    }
  }
}

TEST_CASE("a constant width with software fma") {
  for (Runtime* runtime : levels())
    if (is_slow(*runtime))
      for (const Storage storage : all_storages)
        check_same(mixed_batch({.storage = storage, .columns = 4097, .rows = 4}).check_forward(*runtime));
}

TEST_SUITE_END();
