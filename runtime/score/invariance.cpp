#include "runtime/score/invariance.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "runtime/score/invariance_calls.hpp"
#include "runtime/score/plain_sums.hpp"
#include "tests/reference/canon_reference.hpp"

namespace bilogp::score {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{64} << 20;

SampleRows take_sample(const RowSet& rows) {
  SampleRows sample{rows.dtype(), rows.id_dtype(), 0, rows.columns(), {}, {}};
  sample.rows = std::min(rows.rows(), std::max<std::int64_t>(1, most_bytes / rows.row_bytes()));
  const auto logits = rows.logits(0, sample.rows);
  finish_reading(logits);
  sample.logits.assign(logits.begin(), logits.end());
  const auto ids = rows.copy_ids(0, sample.rows);
  const std::int64_t size = size_of(rows.id_dtype());
  for (std::int64_t row = 0; row < sample.rows; ++row) {
    const std::byte* const id = ids.data() + row * rows.ids_per_row() * size;
    sample.ids.insert(sample.ids.end(), id, id + size);
  }
  return sample;
}

// The instruction-set levels of the CPU that this machine runs, besides the one in use; a GPU is compared with them
// too.
std::vector<Runtime*> other_levels(const Runtime& in_use) {
  std::vector<Runtime*> levels;
  for (const std::string& name : Runtime::known_targets()) {
    if (!name.starts_with("cpu")) continue;
    Runtime& level = Runtime::get(name);
    const bool listed =
        std::any_of(levels.begin(), levels.end(), [&](auto* other) { return other->target() == level.target(); });
    if (level.runnable() && level.target() != in_use.target() && !listed) levels.push_back(&level);
  }
  return levels;
}

class Checker {
public:
  Checker(Runtime& runtime, const SampleRows& sample, const LogpOptions& options)
      : runtime_(runtime), sample_(sample), options_(options),
        expected_(score_in_batches(runtime, sample, sample.rows, options)) {
    report_.rows = sample.rows;
  }

  void check(std::string name, const std::function<Answers()>& score) {
    const auto start = std::chrono::steady_clock::now();
    const Answers answers = score();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    report_.checks.push_back({std::move(name), expected_.bits(), answers.bits_different(expected_), elapsed.count()});
  }

  void check_batches() {
    check("each row alone, in memory of its own", [&] { return score_one_by_one(runtime_, sample_, options_); });
    check("shuffled", [&] { return score_shuffled(runtime_, sample_, options_); });
    for (const std::int64_t batch : {1, 2, 7, 16})
      check(fmt::format("in batches of {}", batch),
            [&] { return score_in_batches(runtime_, sample_, batch, options_); });
    check(fmt::format("in one batch of {} again", sample_.rows),
          [&] { return score_in_batches(runtime_, sample_, sample_.rows, options_); });
  }

  void check_memory() {
    check("rows V + 13 apart, misaligned", [&] { return score_padded(runtime_, sample_, options_); });
    check("13 padding columns (vocab_size)", [&] { return score_wide(runtime_, sample_, options_); });
    check("strided as logits[:, :-1]", [&] { return score_strided(runtime_, sample_, options_); });
  }

  void check_shards() {
    for (const std::int64_t shards : {2, 3, 7})
      if (shards <= sample_.columns)
        check(fmt::format("split over {} shards", shards),
              [&] { return score_sharded(runtime_, sample_, shards, options_); });
  }

  void check_threads() {
    if (!runtime_.target().starts_with("cpu")) return;
    const int most = std::clamp(Runtime::num_threads(), 4, most_threads_checked);
    for (int threads = 1; threads <= most; ++threads) {
      LogpOptions options = options_;
      options.threads = threads;
      check(fmt::format("on {} thread{}", threads, threads == 1 ? "" : "s"),
            [&] { return score_in_batches(runtime_, sample_, sample_.rows, options); });
    }
  }

  void check_levels() {
    if (options_.numerics != Numerics::portable) return; // other bits on other devices, by definition
    for (Runtime* const level : other_levels(runtime_)) {
      check(fmt::format("on {}", level->target()),
            [&] { return score_in_batches(*level, sample_, sample_.rows, options_); });
      if (sample_.columns >= 3)
        check(fmt::format("on {}, split over 3 shards", level->target()),
              [&] { return score_sharded(*level, sample_, 3, options_); });
    }
  }

  void count_plain_sums(const RowSet& rows) {
    const std::int64_t used = options_.vocab_size < 0 ? sample_.columns : options_.vocab_size;
    const auto temperature = static_cast<float>(options_.temperature);
    const auto storage = sample_.dtype == DType::float32   ? reference::Storage::float32
                         : sample_.dtype == DType::float16 ? reference::Storage::float16
                                                           : reference::Storage::bfloat16;
    std::vector<float> logits(static_cast<std::size_t>(used));
    const auto differ = [](float a, float b) {
      return std::bit_cast<std::uint32_t>(a) != std::bit_cast<std::uint32_t>(b);
    };
    for (std::int64_t row = 0; row < sample_.rows; ++row) {
      const std::int64_t target = rows.target_id(row, 0);
      const auto logp = std::bit_cast<float>(expected_.logp[static_cast<std::size_t>(row)]);
      if (target == options_.ignore_index || !std::isfinite(logp)) continue;
      for (std::int64_t j = 0; j < used; ++j)
        logits[static_cast<std::size_t>(j)] =
            std::bit_cast<float>(reference::widen(storage, sample_.row(row) + j * size_of(sample_.dtype))) /
            temperature;
      const float simple = plain_logp(logits, target, 1);
      const float partial_8 = plain_logp(logits, target, 8);
      const float partial_16 = plain_logp(logits, target, 16);
      ++report_.plain.rows;
      report_.plain.simple_against_8 += differ(simple, partial_8) ? 1 : 0;
      report_.plain.partial_8_against_16 += differ(partial_8, partial_16) ? 1 : 0;
      report_.plain.simple_against_bilogp += differ(simple, logp) ? 1 : 0;
    }
  }

  [[nodiscard]] const InvarianceReport& report() const { return report_; }

private:
  Runtime& runtime_;
  const SampleRows& sample_;
  const LogpOptions& options_;
  Answers expected_;
  InvarianceReport report_;
};

} // namespace

bool InvarianceReport::all_equal() const {
  return std::all_of(checks.begin(), checks.end(), [](const auto& check) { return check.bits_different == 0; });
}

InvarianceReport check_invariance(Runtime& runtime, const RowSet& rows, const LogpOptions& options) {
  if (rows.rows() == 0) return {};
  const SampleRows sample = take_sample(rows);
  Checker checker(runtime, sample, options);
  checker.check_batches();
  checker.check_memory();
  checker.check_shards();
  checker.check_threads();
  checker.check_levels();
  checker.count_plain_sums(rows);
  return checker.report();
}

} // namespace bilogp::score
