// Every operator under every launch plan, against the slow reference, bit for bit.
#include "tests/cuda/suites.hpp"

namespace {

using bilogp::test::all_storages;
using cuda_test::check_mix_on_device;
using cuda_test::OfBfloat16;
using cuda_test::OfFloat16;
using cuda_test::OfFloat32;
using cuda_test::Storage;

} // namespace

TEST_SUITE_BEGIN("bits");

TEST_CASE("all kinds of rows at narrow widths") {
  for (const std::int64_t columns : {1, 2, 3, 5, 8, 31, 33, 64, 127, 256, 257, 1000})
    for (const Storage storage : all_storages)
      check_mix_on_device({.storage = storage, .columns = columns, .seed = static_cast<std::uint64_t>(columns)},
                          columns > 8 ? 3 : 1, {-1, 0});
}

TEST_CASE("all kinds of rows on either side of powers of two") {
  for (const std::int64_t columns : {1023, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 8191, 8193, 16384, 16387})
    for (const Storage storage : all_storages)
      check_mix_on_device({.storage = storage, .columns = columns, .seed = static_cast<std::uint64_t>(columns)}, 3);
}

TEST_CASE_TEMPLATE("all kinds of rows at the widths of real vocabularies", T, OfFloat32, OfFloat16, OfBfloat16) {
  for (const std::int64_t columns : {32000, 32768, 50257, 128256, 151936})
    check_mix_on_device({.storage = T::storage, .columns = columns, .seed = static_cast<std::uint64_t>(columns)},
                        columns < 100000 ? 4 : 2);
}

TEST_CASE_TEMPLATE("vocabularies that end before the stored columns do", T, OfFloat32, OfFloat16, OfBfloat16) {
  for (const std::int64_t vocab_size : {1, 100, 4099, 32767, 32000, 40000})
    check_mix_on_device({.storage = T::storage,
                         .columns = 40064,
                         .seed = static_cast<std::uint64_t>(vocab_size),
                         .vocab_size = vocab_size},
                        3);
}

TEST_CASE("temperatures, of the call and of each row") {
  for (const double temperature : {0.7, 1.3, 0x1p-20, 0x1p20})
    for (const Storage storage : all_storages)
      check_mix_on_device({.storage = storage, .columns = 8200, .seed = 5, .temperature = temperature});
  for (const Storage storage : all_storages)
    for (const std::int64_t columns : {515, 33000})
      check_mix_on_device({.storage = storage,
                           .columns = columns,
                           .seed = 6,
                           .temperatures = bilogp::test::Temperatures::per_row_with_bad},
                          2);
}

TEST_CASE("rows at any address and distance") {
  for (const Storage storage : all_storages) {
    const std::int64_t size = storage == Storage::float32 ? 4 : 2;
    for (const std::int64_t columns : {4101, 32768})
      for (const std::int64_t misalignment : {size, 3 * size, std::int64_t{8}, std::int64_t{16}})
        for (const std::int64_t padding : {0, 1, 7, 8})
          check_mix_on_device({.storage = storage,
                               .columns = columns,
                               .rows = 9,
                               .seed = static_cast<std::uint64_t>(columns + padding),
                               .layout = {.row_padding = padding, .misalignment = misalignment}},
                              1);
  }
}

TEST_CASE("many rows at any address, by the plan that is chosen") {
  for (const Storage storage : all_storages)
    for (const std::int64_t padding : {0, 1, 2, 5})
      check_mix_on_device({.storage = storage,
                           .columns = 9001,
                           .rows = 150,
                           .seed = static_cast<std::uint64_t>(padding),
                           .layout = {.row_padding = padding, .misalignment = storage == Storage::float32 ? 4 : 6}},
                          1, {-1});
}

TEST_CASE("32-bit ids and several ids per row") {
  for (const Storage storage : all_storages)
    for (const std::int64_t ids : {1, 2, 5})
      check_mix_on_device({.storage = storage,
                           .columns = 9001,
                           .seed = static_cast<std::uint64_t>(ids),
                           .ids_per_row = ids,
                           .id_dtype = bilogp::DType::int32},
                          2);
}

TEST_CASE_TEMPLATE("one row to several hundred", T, OfFloat32, OfFloat16, OfBfloat16) {
  for (const std::int64_t rows : {1, 2, 8, 31, 64, 131, 133, 300})
    check_mix_on_device(
        {.storage = T::storage, .columns = 20000, .rows = rows, .seed = static_cast<std::uint64_t>(rows)});
}

TEST_SUITE_END();
