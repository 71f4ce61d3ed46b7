// Rows of several tiles, where a kernel goes through tiles the fast way, and what makes it leave that way.
#include <cmath>
#include <limits>

#include "tests/cpu/checks.hpp"
#include "tests/reference/row_generators.hpp"

using namespace bilogp;
using namespace bilogp::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Mostly N(0, spread); now and then one of `others`, each as the storage type holds it.
struct Sprinkled {
  float spread = 3;
  std::vector<float> others = {};
  unsigned one_in = 64; // columns
};

std::vector<std::uint32_t> make(const Sprinkled& kind, std::int64_t columns, Storage storage, std::mt19937_64& random) {
  std::normal_distribution<float> normal(0, kind.spread);
  std::vector<std::uint32_t> row;
  for (std::int64_t i = 0; i < columns; ++i) {
    const bool other = !kind.others.empty() && random() % kind.one_in == 0;
    row.push_back(
        reference::representable(storage, other ? kind.others[random() % kind.others.size()] : normal(random)));
  }
  return row;
}

// The exponents at which leaves leave the window, at which far logits are clamped, and where clamping is in vain.
std::vector<float> around(float exponent, float temperature) {
  const float edge = exponent * temperature / 1.44269504F;
  return {edge, edge * 1.001F, edge * 0.999F, edge * 1.01F, edge * 0.99F};
}

std::vector<Sprinkled> kinds(float temperature) {
  std::vector<Sprinkled> all = {{.spread = 3 * temperature}, {.others = {-infinity}, .one_in = 4}};
  for (const float exponent : {115.0F, -115.0F, -71.4F, -73.0F, -95.0F, 126.0F, -126.0F, -149.0F}) {
    all.push_back({.spread = 3 * temperature, .others = around(exponent, temperature), .one_in = 2000});
    all.push_back({.spread = 3 * temperature, .others = around(exponent, temperature), .one_in = 3});
    Sprinkled masked = all.back();
    masked.others.push_back(-infinity);
    all.push_back(masked);
  }
  all.push_back({.spread = 1, .others = around(-115.0F, temperature), .one_in = 1}); // nothing but far ones
  all.push_back({.others = {-infinity}, .one_in = 1});
  all.push_back({.others = {infinity, -infinity}, .one_in = 9000});
  all.push_back({.others = {std::numeric_limits<float>::quiet_NaN(), -infinity}, .one_in = 9000});
  return all;
}

Batch batch_of(const std::vector<Sprinkled>& rows, Storage storage, std::int64_t columns, float temperature,
               std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Batch batch(storage, columns);
  batch.options.temperature = temperature;
  batch.options.threads = 1; // so that one row's way is tried on the next
  for (const Sprinkled& kind : rows)
    batch.add(make(kind, columns, storage, random),
              {static_cast<std::int64_t>(random() % static_cast<unsigned>(columns))}, 0.01F);
  return batch;
}

} // namespace

TEST_SUITE_BEGIN("streams");

TEST_CASE("logits at the edges of the window, in rows of several tiles") {
  for (Runtime* runtime : levels())
    for (const Storage storage : all_storages)
      for (const float temperature : {1.0F, 0.7F, 200.0F, 400.0F, 3000.0F}) {
        if (is_slow(*runtime) && temperature != 1.0F) continue;
        Batch batch = batch_of(kinds(temperature), storage, 26011, temperature, 5);
        check_same(batch.check_forward(*runtime));
      }
}

TEST_CASE("rows too wide for any window, one after the other, and what ends the run") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Sprinkled wide = {.spread = 60};
  const Sprinkled masked = {.spread = 60, .others = {-infinity}, .one_in = 3};
  for (Runtime* runtime : levels())
    for (const Storage storage : all_storages)
      for (const float temperature : {1.0F, 0.05F, 0x1p-20F}) {
        std::vector<Sprinkled> rows = {wide, wide, masked, {.spread = 3}, wide, {.others = {-infinity}, .one_in = 4}};
        // Around 2^20, where one rounding no longer does, and around the bound of the smallest temperature.
        for (const float edge : {0x1p20F * temperature / 1.44269504F, 512.0F, 60000.0F})
          for (const float sign : {1.0F, -1.0F}) {
            rows.push_back(wide);
            rows.push_back({.spread = 60,
                            .others = {sign * edge, sign * edge * 1.01F, sign * edge * 0.99F, sign * edge * 4},
                            .one_in = 5000});
          }
        for (const float poison : {nan, infinity}) {
          rows.push_back(wide);
          rows.push_back({.spread = 60, .others = {poison, -infinity}, .one_in = 9000});
        }
        rows.push_back(wide);
        rows.push_back({.others = {-infinity}, .one_in = 1});
        rows.push_back(wide);
        Batch batch = batch_of(rows, storage, is_slow(*runtime) ? 9001 : 26011, temperature, 9);
        check_same(batch.check_forward(*runtime));
      }
}

TEST_CASE("logits beyond the bound where their exponents are small, one row after the other") {
  for (Runtime* runtime : levels())
    for (const Storage storage : {Storage::float32, Storage::bfloat16}) {
      const Sprinkled within = {.spread = 0x1p28F};
      const Sprinkled beyond = {.spread = 0x1p28F, .others = {0x1.8p29F, -0x1.8p29F, 0x1p31F, -infinity}, .one_in = 50};
      Batch batch = batch_of({within, beyond, beyond, within, beyond}, storage, 700, 0x1p20F, 12);
      check_same(batch.check_forward(*runtime));
    }
}

TEST_CASE("subnormal float16 logits among ordinary ones") {
  std::vector<Sprinkled> rows;
  for (const unsigned one_in : {20000U, 500U, 3U, 1U})
    for (const float spread : {3.0F, 1.0e-5F})
      rows.push_back({.spread = spread, .others = {6.0e-8F, -5.9e-5F, 3.0e-5F, -infinity}, .one_in = one_in});
  rows.push_back({.spread = 3});
  for (Runtime* runtime : levels())
    for (const float temperature : {1.0F, 500.0F, 3000.0F}) {
      Batch batch = batch_of(rows, Storage::float16, 40000, temperature, 6);
      check_same(batch.check_forward(*runtime));
    }
}

TEST_CASE("without multiply-adds: tables of leaves made, found, of another temperature or type, and left") {
  Runtime& runtime = Runtime::get("cpu:x86-64-v2");
  if (!runtime.runnable()) return;
  struct Step {
    Storage storage;
    float temperature;
    std::size_t rows;
    std::int64_t columns;
    int threads;
  };
  const Storage half = Storage::float16;
  const Storage brain = Storage::bfloat16;
  for (const Step& step : {Step{brain, 1, 3, 100, 1}, Step{brain, 1, 1, 300000, 1}, Step{brain, 1, 3, 100, 1},
                           Step{half, 1, 3, 100, 1}, Step{half, 1, 8, 40000, 2}, Step{half, 0.7F, 2, 9000, 1},
                           Step{half, 0.7F, 1, 300000, 2}, Step{brain, 1, 8, 40000, 2}, Step{brain, 30, 8, 40000, 1}}) {
    CAPTURE(step.columns);
    CAPTURE(step.temperature);
    std::vector<Sprinkled> rows(step.rows, Sprinkled{.spread = 3, .others = {-infinity, 60, -60, 90, -90}});
    Batch batch = batch_of(rows, step.storage, step.columns, step.temperature, 8);
    batch.options.threads = step.threads;
    check_same(batch.check_forward(runtime));
    check_same(batch.check_shards(runtime, {step.columns / 3}));
    const std::vector<float> temperatures(step.rows, 1.3F);
    Batch own = batch_of(rows, step.storage, step.columns, step.temperature, 8);
    own.temperatures = temperatures;
    check_same(own.check_forward(runtime));
  }
}

TEST_CASE("gradients that are written around the caches") {
  for (Runtime* runtime : levels()) {
    if (is_slow(*runtime)) continue;
    for (const Storage storage : all_storages)
      for (const std::int64_t misalignment : {0, 6})
        check_mix({.storage = storage,
                   .columns = 131101,
                   .rows = storage == Storage::float32 ? 17 : 33,
                   .seed = static_cast<std::uint64_t>(7 + misalignment),
                   .layout = {.row_padding = 3, .misalignment = misalignment},
                   .threads = 2},
                  *runtime);
  }
}

TEST_SUITE_END();
