// Every kind of row, storage type, id type and temperature, on every level.
#include <cmath>

#include "tests/cpu/checks.hpp"
#include "tests/reference/row_generators.hpp"

using namespace bilogp;
using namespace bilogp::test;

TEST_SUITE_BEGIN("row kinds");

TEST_CASE("every kind of row at scalar temperatures") {
  for (Runtime* runtime : levels())
    for (const Storage storage : all_storages)
      for (const DType id_dtype : {DType::int32, DType::int64})
        for (const double temperature : {1.0, 0.7, 2.0, 30.0, 0x1p-20, 0x1p20})
          for (const std::int64_t columns : {47, 600}) {
            if (is_slow(*runtime) && columns > 100) continue;
            check_mix({.storage = storage,
                       .columns = columns,
                       .seed = static_cast<std::uint64_t>(columns + (id_dtype == DType::int32)),
                       .id_dtype = id_dtype,
                       .temperature = temperature},
                      *runtime, 2);
          }
}

TEST_CASE("every kind of row with a temperature of its own, out of range too") {
  for (Runtime* runtime : levels())
    for (const Storage storage : all_storages)
      for (const std::int64_t columns : {1, 33, 700})
        for (const Temperatures temperatures : {Temperatures::per_row, Temperatures::per_row_with_bad}) {
          if (is_slow(*runtime) && columns > 100) continue;
          check_mix({.storage = storage, .columns = columns, .rows = 64, .seed = 3, .temperatures = temperatures},
                    *runtime, 2);
        }
}

TEST_CASE("chained ties, many of them") {
  for (Runtime* runtime : levels())
    for (std::uint64_t seed = 0; seed < (is_slow(*runtime) ? 2 : 20); ++seed)
      check_mix({.storage = all_storages[seed % 3], .columns = 1500, .rows = 28, .seed = 100 + seed}, *runtime, 4);
}

TEST_CASE("a vocabulary smaller than its stored columns") {
  for (Runtime* runtime : levels())
    for (const Storage storage : all_storages)
      for (const std::int64_t vocab_size : {1, 2, 15, 16, 63, 64, 65, 127, 129, 200, 259, 260})
        check_mix({.storage = storage,
                   .columns = 260,
                   .rows = is_slow(*runtime) ? 5 : 0,
                   .seed = static_cast<std::uint64_t>(vocab_size),
                   .vocab_size = vocab_size},
                  *runtime, 3);
}

// Only where c is a power of two can x * c lie halfway between integers; there the even n decides what the gradient
// makes +0.0.
TEST_CASE("ties of the exponent, around the gradient's floor") {
  for (Runtime* runtime : levels())
    for (const Storage storage : all_storages)
      for (const float temperature : {0x1.715476p0F, 0x1.715476p4F, 0x1.715476p-3F}) {
        const double c = std::exp2(-std::ilogb(temperature));
        std::mt19937_64 random(11);
        Batch batch(storage, 77);
        batch.options.temperature = temperature;
        for (int r = 0; r < 28; ++r) {
          const int highest = static_cast<int>(random() % 60) - 20;
          std::vector<std::uint32_t> row;
          for (int i = 0; i < 77; ++i) {
            const double half_steps = static_cast<double>(random() % 9) - 4;
            row.push_back(reference::representable(storage, (highest - 99 + half_steps / 2) / c));
          }
          row[random() % row.size()] = reference::representable(storage, highest / c);
          constexpr float upstreams[] = {1, -0.3F, 1e-38F, 1.7e38F, 0x1p127F, 0x1p-149F, 0x1p26F};
          batch.add(std::move(row), {static_cast<std::int64_t>(random() % 77)}, upstreams[r % 7]);
        }
        check_same(check_everything(batch, *runtime, {25}));
      }
}

TEST_SUITE_END();
