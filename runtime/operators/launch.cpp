#include "runtime/operators/launch.hpp"

#include <fmt/format.h>

namespace bilogp {

cpu::Crew crew_of(const LogpOptions& options) {
  if (options.executor == nullptr) return {options.threads > 0 ? options.threads : cpu::current_threads(), nullptr};
  const int threads = options.executor->concurrency();
  if (threads < 1 || threads > cpu::largest_thread_count)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the executor's concurrency is {}; expected 1 to {}", threads, +cpu::largest_thread_count));
  return {threads, options.executor};
}

} // namespace bilogp
