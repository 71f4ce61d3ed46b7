#include "tests/cpu/mixed.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "tests/reference/row_generators.hpp"

namespace bilogp::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float upstream_gradients[] = {1,       -0.001F, 0.3F,      nan,     -7.25F, 1.0e-38F, -1,
                                        1.0e30F, 0,       -infinity, 1.0e-3F, -0.0F,  3.0e38F,  2};
constexpr float good_temperatures[] = {1, 0.7F, 2, 0x1p-20F, 0x1p20F, 1.3F, 0.01F, 100};
constexpr float bad_temperatures[] = {0, -1, nan, infinity, 0x1p-21F, 0x1.000002p20F, -0.0F, 0x1.fffffep-21F};

template<std::size_t N> float pick(const float (&values)[N], std::mt19937_64& random) {
  return values[random() % N];
}

} // namespace

Batch mixed_batch(const Mix& mix) {
  Batch batch(mix.storage, mix.columns, mix.layout);
  batch.options.vocab_size = mix.vocab_size;
  batch.options.temperature = mix.temperature;
  batch.options.threads = mix.threads;
  batch.id_dtype = mix.id_dtype;
  std::vector<reference::RowKind> kinds;
  std::copy_if(reference::all_kinds().begin(), reference::all_kinds().end(), std::back_inserter(kinds),
               [&](reference::RowKind kind) { return reference::holds(kind, mix.storage); });
  const std::int64_t rows = mix.rows == 0 ? static_cast<std::int64_t>(kinds.size()) : mix.rows;
  std::mt19937_64 random(mix.seed);
  const std::size_t first = mix.rows == 0 ? 0 : random() % kinds.size();
  reference::RowOptions options;
  options.vocab_size = mix.vocab_size;
  for (std::int64_t r = 0; r < rows; ++r) {
    const reference::RowKind kind = kinds[(first + static_cast<std::size_t>(r)) % kinds.size()];
    auto row = reference::make_row(kind, mix.columns, mix.storage, random());
    auto ids = reference::make_target_ids(row, mix.ids_per_row, options, true, random());
    batch.add(std::move(row), std::move(ids), pick(upstream_gradients, random));
    if (mix.temperatures == Temperatures::scalar) continue;
    const bool bad = mix.temperatures == Temperatures::per_row_with_bad && random() % 3 == 0;
    batch.temperatures.push_back(bad ? pick(bad_temperatures, random) : pick(good_temperatures, random));
  }
  return batch;
}

std::string describe(const Mix& mix) {
  return fmt::format("{} columns={} rows={} seed={} ids_per_row={} {} padding={} misalignment={} vocab_size={} "
                     "temperature={} temperatures={} threads={}",
                     reference::to_string(mix.storage), mix.columns, mix.rows, mix.seed, mix.ids_per_row,
                     to_string(mix.id_dtype), mix.layout.row_padding, mix.layout.misalignment, mix.vocab_size,
                     mix.temperature, static_cast<int>(mix.temperatures), mix.threads);
}

std::vector<std::int64_t> random_cuts(std::mt19937_64& random, std::int64_t columns, std::int64_t count) {
  std::set<std::int64_t> cuts;
  if (columns < 2) return {};
  while (static_cast<std::int64_t>(cuts.size()) < std::min(count, columns - 1)) {
    const auto cut = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(columns - 1));
    cuts.insert(cut);
    if (random() % 4 == 0 && cut + 1 < columns) cuts.insert(cut + 1); // a shard of one column
  }
  return {cuts.begin(), cuts.end()};
}

const std::vector<Runtime*>& levels() {
  static const std::vector<Runtime*> found = [] {
    std::vector<Runtime*> result = {&Runtime::get("cpu")};
    for (const char* name : {"cpu:x86-64-v4", "cpu:x86-64-v3", "cpu:x86-64-v2", "cpu:aarch64"}) {
      Runtime& runtime = Runtime::get(name);
      if (runtime.runnable() && runtime.target() != result.front()->target()) result.push_back(&runtime);
    }
    return result;
  }();
  return found;
}

bool is_slow(const Runtime& runtime) {
  return runtime.target() == "cpu:x86-64-v2";
}

std::string check_everything(Batch& batch, Runtime& runtime, const std::vector<std::int64_t>& cuts) {
  std::string difference = batch.check_forward(runtime);
  const bool one_id = batch.ids_per_row() == 1;
  if (difference.empty() && one_id) difference = batch.check_backward(runtime, false);
  if (difference.empty() && one_id) difference = batch.check_backward(runtime, true);
  if (difference.empty() && one_id) difference = batch.check_with_gradient(runtime, false);
  if (difference.empty() && one_id) difference = batch.check_with_gradient(runtime, true);
  if (difference.empty() && one_id && !cuts.empty()) difference = batch.check_shards(runtime, cuts);
  if (difference.empty() && one_id && !cuts.empty()) difference = batch.check_backward_shards(runtime, cuts);
  return difference.empty() ? difference : fmt::format("{}: {}", runtime.target(), difference);
}

} // namespace bilogp::test
