// Every kind of row, storage type, id type and temperature, on every level.
#include "tests/cpu/checks.hpp"

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

TEST_SUITE_END();
