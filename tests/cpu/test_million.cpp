// A great many small rows.
#include "tests/cpu/checks.hpp"
#include "tests/reference/row_generators.hpp"

using namespace bilogp;
using namespace bilogp::test;

TEST_SUITE_BEGIN("million rows");

TEST_CASE("more than a million rows") {
  std::int64_t rows = 0;
  for (std::uint64_t turn = 0; turn < 256; ++turn) {
    const auto columns = static_cast<std::int64_t>(1 + turn % 45);
    const Storage storage = all_storages[turn % 3];
    Batch batch(storage, columns, {static_cast<std::int64_t>(turn % 4), 0});
    batch.options.temperature = turn % 5 == 0 ? 0.7 : 1;
    std::mt19937_64 random(turn);
    for (std::int64_t r = 0; r < 4096; ++r) {
      std::vector<std::uint32_t> row(static_cast<std::size_t>(columns));
      const double scale = 1 + static_cast<double>(r % 32);
      for (std::uint32_t& bits : row) { // uniform; three columns of 256 are -inf
        const std::uint64_t draw = random();
        bits = draw % 256 < 3
                   ? 0xff800000U
                   : reference::representable(storage, scale * (static_cast<double>(draw >> 11) * 0x1p-52 - 1));
      }
      batch.add(std::move(row), {static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(columns))});
    }
    Runtime& runtime = *levels()[turn % levels().size()];
    check_same(batch.check_forward(runtime));
    if (&runtime != levels().front()) check_same(batch.check_forward(*levels().front()));
    if (turn % 16 == 0) check_same(batch.check_backward(*levels().front(), true));
    rows += batch.rows();
  }
  CHECK(rows > 1000000);
}

TEST_SUITE_END();
