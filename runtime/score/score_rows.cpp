#include "runtime/score/score_rows.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "runtime/score/device_call.hpp"

namespace bilogp::score {
namespace {

// Rows are short where V is small; this bounds the memory for their results.
constexpr std::int64_t most_ids_per_chunk = std::int64_t{1} << 20;

class Stopwatch {
public:
  // Seconds since the last lap.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(start_, now)).count();
  }

private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class Scorer {
public:
  Scorer(Runtime& runtime, const RowSet& rows, const ScoreOptions& options, std::int64_t chunk_rows)
      : runtime_(runtime), device_(runtime), rows_(rows), options_(options),
        logp_(static_cast<std::size_t>(chunk_rows * rows.ids_per_row())), lse_(static_cast<std::size_t>(chunk_rows)),
        row_state_(static_cast<std::size_t>(2 * chunk_rows)),
        grad_(static_cast<std::size_t>(options.grad ? chunk_rows * rows.row_bytes() : 0)) {}

  Chunk score(std::int64_t first_row, std::int64_t count, ScoreTiming& timing) {
    const auto logits = rows_.logits(first_row, count);
    const auto ids = rows_.copy_ids(first_row, count);
    Stopwatch watch;
    finish_reading(logits);
    const LogpArgs forward = forward_args(logits, ids, count);
    device_.wait();
    timing.reading += watch.lap();
    runtime_.logp(forward);
    device_.wait();
    timing.forward += watch.lap();
    if (options_.grad) {
      const LogpBackwardArgs backward = backward_args(logits, ids, count);
      device_.wait();
      timing.reading += watch.lap();
      runtime_.logp_backward(backward);
      device_.wait();
      timing.backward += watch.lap();
    }
    device_.fetch();
    timing.reading += watch.lap();

    const auto n = static_cast<std::size_t>(count);
    Chunk chunk{first_row, count, logits, {}, std::span(lse_).first(n), std::span(row_state_).first(2 * n), {}};
    chunk.logp = std::span(logp_).first(n * static_cast<std::size_t>(rows_.ids_per_row()));
    if (options_.grad) chunk.grad_logits = std::span(grad_).first(logits.size());
    return chunk;
  }

private:
  [[nodiscard]] TensorView ids_view(std::span<const std::byte> ids, std::int64_t count) const {
    return rows_.has_id_dimension() ? TensorView::contiguous(ids.data(), rows_.id_dtype(), {count, rows_.ids_per_row()})
                                    : TensorView::contiguous(ids.data(), rows_.id_dtype(), {count});
  }

  [[nodiscard]] TensorView logp_view(std::int64_t count) const {
    return rows_.has_id_dimension() ? TensorView::contiguous(logp_.data(), DType::float32, {count, rows_.ids_per_row()})
                                    : TensorView::contiguous(logp_.data(), DType::float32, {count});
  }

  LogpArgs forward_args(std::span<const std::byte> logits, std::span<const std::byte> ids, std::int64_t count) {
    LogpArgs args;
    args.logits = device_.in(TensorView::contiguous(logits.data(), rows_.dtype(), {count, rows_.columns()}));
    args.target_ids = device_.in(ids_view(ids, count));
    args.logp = device_.out(logp_view(count));
    args.lse = device_.out(TensorView::contiguous(lse_.data(), DType::float32, {count}));
    args.row_state = device_.out(TensorView::contiguous(row_state_.data(), DType::int32, {count, 2}));
    args.options = options_.logp;
    return args;
  }

  LogpBackwardArgs backward_args(std::span<const std::byte> logits, std::span<const std::byte> ids,
                                 std::int64_t count) {
    LogpBackwardArgs args;
    args.logits = device_.in(TensorView::contiguous(logits.data(), rows_.dtype(), {count, rows_.columns()}));
    args.target_ids = device_.in(TensorView::contiguous(ids.data(), rows_.id_dtype(), {count}));
    args.row_state = device_.in(TensorView::contiguous(row_state_.data(), DType::int32, {count, 2}));
    args.grad_logp = device_.in(TensorView::strided(&one_, DType::float32, {count}, {0}));
    args.grad_logits = device_.out(TensorView::contiguous(grad_.data(), rows_.dtype(), {count, rows_.columns()}));
    args.options = options_.logp;
    return args;
  }

  Runtime& runtime_;
  DeviceCall device_;
  const RowSet& rows_;
  const ScoreOptions& options_;
  std::vector<std::uint32_t> logp_;
  std::vector<std::uint32_t> lse_;
  std::vector<std::int32_t> row_state_;
  std::vector<std::byte> grad_;
  const float one_ = 1.0F;
};

} // namespace

ScoreTiming score_rows(Runtime& runtime, const RowSet& rows, const ScoreOptions& options,
                       std::span<ChunkSink* const> sinks, const std::function<void(std::int64_t)>& progress) {
  const std::int64_t fitting =
      std::min(options.chunk_bytes / rows.row_bytes(), most_ids_per_chunk / rows.ids_per_row());
  const std::int64_t most_rows = std::max<std::int64_t>(fitting, 1);
  // Even chunks: a last one of few rows would be planned in another way, with kernels of its own.
  const std::int64_t chunks = (rows.rows() + most_rows - 1) / most_rows;
  const auto first_row = [&](std::int64_t chunk) {
    return chunk < chunks ? chunk * rows.rows() / chunks : rows.rows();
  };
  const auto rows_of = [&](std::int64_t chunk) { return first_row(chunk + 1) - first_row(chunk); };

  Scorer scorer(runtime, rows, options, std::min(most_rows, std::max<std::int64_t>(rows.rows(), 1)));
  ScoreTiming ignored;
  // A few rows per thread load the kernels and start the threads. Without rows this still checks the options.
  const std::int64_t threads = options.logp.threads > 0 ? options.logp.threads : Runtime::num_threads();
  scorer.score(0, std::min(4 * threads, rows_of(0)), ignored);

  ScoreTiming timing;
  start_reading(rows.logits(0, rows_of(0)));
  for (std::int64_t i = 0; i < chunks; ++i) {
    const std::int64_t next = first_row(i + 1);
    start_reading(rows.logits(next, rows_of(i + 1)));
    const Chunk chunk = scorer.score(first_row(i), next - first_row(i), timing);
    for (ChunkSink* const sink : sinks) sink->take(chunk);
    forget(chunk.logits);
    progress(next);
  }
  return timing;
}

} // namespace bilogp::score
