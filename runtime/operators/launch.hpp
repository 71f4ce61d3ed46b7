// Launching a CPU kernel over the rows of a call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "bilogp/runtime.hpp"
#include "runtime/backends/cpu/kernels.hpp"
#include "runtime/backends/cpu/threads.hpp"
#include "runtime/binding.hpp"
#include "runtime/kernel_arguments.hpp"
#include "runtime/operators/row_space.hpp"

namespace bilogp {

// Below this many bytes of logits a call stays on the calling thread, where waking another brings nothing, and no piece
// of a call is smaller than that (bench/cpu/bench_threads: waking and joining cost 3 to 5 us).
constexpr std::int64_t smallest_parallel_bytes = std::int64_t{128} * 1024;
constexpr std::int64_t smallest_piece_bytes = std::int64_t{64} * 1024;

// From so many bytes of gradients on they are written around the caches of a CPU, which could not keep them: a third of
// the time less where they are large, but the next reader finds them in memory. Over the logits the lines are there.
constexpr std::int64_t smallest_past_cache_bytes = std::int64_t{8} * 1024 * 1024;

constexpr bool writes_past_cache(std::int64_t rows, std::int64_t columns, std::int64_t element_bytes, bool in_place) {
  return !in_place && rows * columns >= smallest_past_cache_bytes / element_bytes;
}

// Bad target ids of one call, gathered from its threads; written to the caller's buffer, or the device's words, at the
// end.
class CallErrors {
public:
  void add(const std::int64_t words[4], std::int64_t row_offset) {
    if (words[0] == 0) return; // the usual call takes no lock
    const std::scoped_lock lock(mutex_);
    merge_target_errors(total_, words, row_offset);
  }
  void publish(const LogpOptions& options) const noexcept {
    if (total_[0] == 0 || options.bad_ids_counted) return;
    if (options.error_buffer == nullptr) return record_target_errors(total_);
    merge_target_errors(options.error_buffer, total_);
  }

private:
  std::mutex mutex_;
  std::int64_t total_[4] = {};
};

// Tables of leaves (templates/device/cpu/leaf_table.h): which kernels look leaves up, and from how many logits per
// thread on a table is made for a call.
enum class LeafTable : std::uint8_t { none, if_there, made };
LeafTable leaf_table_of(const Runtime& runtime, DType logits, std::int64_t logit_count, int threads);

// Gives a piece of a call the calling thread's memory for a table; none where there is no memory: it only saves time.
void lend_leaf_table(kernel::RowOptions& options, LeafTable table) noexcept;

// The options have been checked. A caller's executor is asked here, once.
cpu::Crew crew_of(const LogpOptions& options);

// Runs rows [0, rows) of one launch, in pieces of a size that keeps the pieces worth a thread.
template<class Kernel, class Arguments>
void launch_rows(Kernel kernel, Arguments& arguments, std::int64_t rows, std::int64_t bytes_per_row,
                 const cpu::Crew& crew, std::int64_t row_offset, CallErrors& errors,
                 LeafTable table = LeafTable::none) {
  const auto run = [&](Arguments& own, std::int64_t begin, std::int64_t end) {
    std::int64_t words[4] = {};
    own.options.errors = reinterpret_cast<kernel::i64*>(words);
    lend_leaf_table(own.options, table);
    kernel(&own, begin, end);
    errors.add(words, row_offset);
  };
  // A small call takes no copy of what was just written: reading it back at once would cost more than writing it.
  if (crew.threads <= 1 || rows * bytes_per_row < smallest_parallel_bytes) return run(arguments, 0, rows);
  const std::int64_t grain = std::max<std::int64_t>(1, smallest_piece_bytes / std::max<std::int64_t>(1, bytes_per_row));
  cpu::for_ranges(rows, grain, crew, [&](std::int64_t begin, std::int64_t end) {
    Arguments own = arguments;
    run(own, begin, end);
  });
}

template<class Element> Element* moved(const TensorView& tensor, std::int64_t elements) {
  return tensor.data == nullptr ? nullptr : static_cast<Element*>(tensor.data) + elements;
}
inline char* moved_bytes(const TensorView& tensor, std::int64_t elements) {
  return tensor.data == nullptr ? nullptr : static_cast<char*>(tensor.data) + elements * size_of(tensor.dtype);
}

// The fields that all operators' arguments share, for one launch of the call.
inline void set_row_options(kernel::RowOptions& row, const LogpOptions& options, const RowSpace& space,
                            float temperature, std::int64_t vocab_size, int temperature_slot, std::int64_t launch) {
  row.inner_rows = space.inner_rows();
  row.vocab_size = vocab_size;
  row.ignore_index = options.ignore_index;
  row.temperature = temperature;
  if (temperature_slot >= 0) {
    row.temperature_rows = moved<const float>(options.temperature_per_row, space.offset(temperature_slot, launch));
    row.temperature_strides = space.strides(temperature_slot);
  }
}

// Where the results of rows go: logp, and lse and row_state where the call wants them.
template<class Arguments, class Args, class Slots>
void set_results(Arguments& a, const Args& args, const Slots& slots, const RowSpace& space, std::int64_t launch) {
  a.logp = moved<float>(args.logp, space.offset(slots.logp, launch));
  a.logp_strides = space.strides(slots.logp);
  if (slots.lse >= 0) {
    a.lse = moved<float>(args.lse, space.offset(slots.lse, launch));
    a.lse_strides = space.strides(slots.lse);
  }
  if (slots.row_state >= 0) {
    a.row_state = moved<kernel::i32>(args.row_state, space.offset(slots.row_state, launch));
    a.row_state_strides = space.strides(slots.row_state);
  }
}

} // namespace bilogp
