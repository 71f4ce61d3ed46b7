// Rows that are not plain: just inside and outside of the windows of every way of summing a tile, and long runs of rows
// of one kind, after which the ways begin with what served.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "tests/cuda/problem.hpp"
#include "tests/reference/chained_ties.hpp"
#include "tests/reference/row_generators.hpp"

namespace {

using bilogp::DType;
using bilogp::Operator;
using bilogp::Runtime;
using bilogp::TensorView;
using bilogp::reference::representable;
using bilogp::test::all_storages;
using cuda_test::Batch;
using cuda_test::check_batch_on_device;
using cuda_test::DeviceTensor;
using cuda_test::first_device;
using cuda_test::Storage;

constexpr double log2e = 0x1.715476p+0;
constexpr double masked = -std::numeric_limits<double>::infinity();

// Where rows lie, in powers of two, what masks some of their columns, and where a few columns lie besides.
struct RowShape {
  double center, deviation, mask, odd_one;
  double masked_share = 1.0 / 40, odd_share = 1.0 / 700;
};

class Rows {
public:
  Rows(Storage storage, std::int64_t columns, double temperature, std::uint64_t seed)
      : storage_(storage), columns_(columns), unit_(temperature / log2e), random_(seed), batch_(storage, columns) {
    batch_.options.temperature = temperature;
  }

  void add(const RowShape& shape) {
    std::vector<std::uint32_t> row;
    for (std::int64_t j = 0; j < columns_; ++j) {
      const double where = share_(random_);
      const double x = where < shape.odd_share ? (shape.odd_one + 0.2 * normal_(random_)) * unit_
                       : where < shape.odd_share + shape.masked_share
                           ? shape.mask
                           : (shape.center + shape.deviation * normal_(random_)) * unit_;
      row.push_back(representable(storage_, x));
    }
    batch_.add(std::move(row), {static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(columns_))}, 0.3F);
  }

  // A tile whose sum's last bit is decided by a term that is not in the window of its neighbours, which reaches higher
  // than its own: columns about `above` the tile's sum, and others all the way down.
  void add_chain(std::int64_t tile, int decisive_exponent, double above, bool filled, std::uint64_t seed) {
    const auto chain = bilogp::reference::make_chained_ties(tile, storage_, filled, seed,
                                                            {.depth = 212, .decisive_exponent = decisive_exponent});
    depth_ = std::max(depth_, chain.depth);
    const double top = decisive_exponent + chain.depth + above;
    std::vector<std::uint32_t> row;
    for (std::int64_t j = 0; j < columns_; ++j) {
      const double where = share_(random_);
      const double exponent = where < 0.05 ? -60 : where < 0.1 ? -140 : top + normal_(random_);
      row.push_back(representable(storage_, exponent * unit_));
    }
    const std::int64_t begin = static_cast<std::int64_t>(seed % 3) * tile;
    std::ranges::copy(chain.logits, row.begin() + static_cast<std::ptrdiff_t>(begin));
    batch_.add(std::move(row), {begin}, 0.3F);
  }

  Batch& batch() { return batch_; }
  [[nodiscard]] int chain_depth() const { return depth_; }

private:
  Storage storage_;
  std::int64_t columns_;
  double unit_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> share_{0.0, 1.0};
  Batch batch_;
  std::int32_t depth_ = 0;
};

std::int64_t tile_columns(Storage storage) {
  return storage == Storage::float32 ? 1024 : 2048;
}

constexpr double masks[] = {masked, -65504, -1000};

} // namespace

TEST_SUITE_BEGIN("windows");

TEST_CASE("columns at the ends of the plain window's masked ways") {
  for (const Storage storage : all_storages)
    for (const double temperature : {1.0, 0.7, 1.6}) {
      Rows rows(storage, 6200, temperature, 51);
      for (const double mask : masks)
        for (const double end : {-117.0, -76.5, 121.0})
          for (double step = -4; step <= 4; step += 0.5)
            rows.add({.center = 0, .deviation = 5, .mask = mask, .odd_one = end + step});
      check_batch_on_device(std::move(rows.batch()), fmt::format("plain window at temperature {}", temperature));
    }
}

TEST_CASE("columns at the ends of windows around a maximum") {
  for (const Storage storage : all_storages) {
    Rows rows(storage, 6200, 1.0, 52);
    for (const double mask : masks)
      for (const double center : {-900.0, -420.0, -150.0, 150.0, 420.0, 11900.0}) {
        for (const double down : {120.0, 143.0, 160.0, 185.0, 200.0, 215.0, 230.0, 243.0, 400.0})
          rows.add({.center = center, .deviation = 4, .mask = mask, .odd_one = center - down});
        rows.add({.center = center, .deviation = 4, .mask = mask, .odd_one = center + 40, .odd_share = 1.0 / 3000});
      }
    for (const double deviation : {30.0, 60.0, 90.0, 200.0, 1000.0})
      for (const double center : {0.0, -2000.0})
        rows.add({.center = center, .deviation = deviation, .mask = masked, .odd_one = center});
    check_batch_on_device(std::move(rows.batch()), "windows around a maximum");
  }
}

TEST_CASE("a term below a window's floor that decides the sum's last bit") {
  for (const Storage storage : all_storages) {
    const std::int64_t tile = tile_columns(storage);
    Rows rows(storage, 3 * tile, 1.0, 54);
    for (const bool filled : {false, true})
      for (std::uint64_t seed = 0; seed < 9; ++seed)
        for (const double above : {-300.0, 30.0})
          rows.add_chain(tile, storage != Storage::bfloat16 && seed % 2 == 1 ? -400 : -135, above, filled, seed);
    CHECK(rows.chain_depth() > 150);
    check_batch_on_device(std::move(rows.batch()), "chained ties");
  }
}

TEST_CASE("runs of rows of one kind, and the change to another") {
  constexpr std::int64_t columns = 33000, run = 700;
  constexpr RowShape shapes[] = {{0, 7, masked, 0},       {0, 7, -65504, 0},       {350, 7, masked, 350, 0},
                                 {0, 7, masked, -100},    {-420, 7, -1e4, -420},   {0, 86, masked, 0},
                                 {0, 7, masked, 0, 0.99}, {0, 7, masked, 0, 0, 0}, {0, 7, -65504, -100},
                                 {350, 7, masked, 350}};
  constexpr std::int64_t chains = 4, kinds = std::size(shapes) + chains, rows = kinds * run;
  for (const Storage storage : all_storages) {
    Rows made(storage, columns, 1.0, 53);
    for (const RowShape& shape : shapes) made.add(shape);
    for (std::uint64_t seed = 0; seed < chains; ++seed) made.add_chain(tile_columns(storage), -135, 36, seed < 2, seed);
    made.batch().score_all(cuda_test::test_threads());
    // Each row many times over: rows of a run lie in one place.
    std::vector<char> logits, ids;
    TensorView logits_view = made.batch().logits(logits), ids_view = made.batch().ids(ids);
    const DeviceTensor logits_there(first_device(), TensorView::strided(logits_view.data, logits_view.dtype,
                                                                        {kinds, run, columns}, {columns, 0, 1}));
    const DeviceTensor ids_there(first_device(),
                                 TensorView::strided(ids_view.data, ids_view.dtype, {kinds, run}, {1, 0}));
    std::vector<std::uint32_t> logp(rows), lse(rows);
    DeviceTensor logp_there(first_device(), TensorView::contiguous(logp.data(), DType::float32, {kinds, run}));
    DeviceTensor lse_there(first_device(), TensorView::contiguous(lse.data(), DType::float32, {kinds, run}));
    for (const int plan : cuda_test::plans_of(Operator::logp_forward)) {
      bilogp::LogpArgs args;
      args.logits = logits_there.view();
      args.target_ids = ids_there.view();
      args.logp = logp_there.view();
      args.lse = lse_there.view();
      args.options.plan = plan;
      Runtime::get("cuda").logp(args);
      cuda_test::wait_for(first_device(), nullptr);
      REQUIRE(logp_there.bring_back() == "");
      REQUIRE(lse_there.bring_back() == "");
      CAPTURE(plan);
      for (std::int64_t row = 0; row < rows; ++row) {
        CAPTURE(row);
        const auto& right = made.batch().expected(row / run);
        REQUIRE(logp[static_cast<std::size_t>(row)] == right.logp.front());
        REQUIRE(lse[static_cast<std::size_t>(row)] == right.lse);
      }
    }
  }
}

TEST_SUITE_END();
