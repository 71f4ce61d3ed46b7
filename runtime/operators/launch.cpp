#include "runtime/operators/launch.hpp"

#include <cstdlib>
#include <memory>

#include <fmt/format.h>

namespace bilogp {

LeafTable leaf_table_of(const Runtime& runtime, DType logits, std::int64_t logit_count, int threads) {
  constexpr std::int64_t worth_a_table = 2 * kernel::leaf_count;
  if (logits == DType::float32 || runtime.target() != "cpu:x86-64-v2") // the one level without multiply-adds
    return LeafTable::none;
  return logit_count / threads >= worth_a_table ? LeafTable::made : LeafTable::if_there;
}

void lend_leaf_table(kernel::RowOptions& options, LeafTable table) noexcept {
  if (table == LeafTable::none) return;
  struct Free {
    void operator()(float* memory) const noexcept { std::free(memory); }
  };
  static thread_local std::unique_ptr<float, Free> memory; // zeros: a table of no temperature
  if (memory == nullptr) memory.reset(static_cast<float*>(std::calloc(kernel::leaf_table_floats, sizeof(float))));
  options.leaf_table = memory.get();
  options.makes_leaf_table = table == LeafTable::made ? 1 : 0;
}

cpu::Crew crew_of(const LogpOptions& options) {
  if (options.executor == nullptr) return {options.threads > 0 ? options.threads : cpu::current_threads(), nullptr};
  const int threads = options.executor->concurrency();
  if (threads < 1 || threads > cpu::largest_thread_count)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the executor's concurrency is {}; expected 1 to {}", threads, +cpu::largest_thread_count));
  return {threads, options.executor};
}

} // namespace bilogp
