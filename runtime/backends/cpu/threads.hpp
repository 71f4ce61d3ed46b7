// The threads of one call: oneTBB's workers, in an arena of the size asked for, or an executor of the caller's.
#pragma once

#include <cstdint>

#include "bilogp/executor.hpp"

namespace bilogp::cpu {

constexpr int largest_thread_count = 4096;

// BILOGP_NUM_THREADS, else the cores of this process's affinity mask, or fewer where its control groups allow it less
// time than that; as they were when first asked. Throws Error(invalid_argument) for a value of
// BILOGP_NUM_THREADS that is not 1 to largest_thread_count.
int default_threads();

// What set_num_threads asked for, else default_threads().
int current_threads();
void set_current_threads(int threads); // 0 restores the default

// Who works on a call.
struct Crew {
  int threads = 1;
  Executor* executor = nullptr; // of so many threads; null: the library's pool
};

// Runs body(context, begin, end) over pieces of [0, count) of at least `grain`, and returns when all are done. The body
// must not throw. In a child process after a fork everything runs on the caller, unless it brings an executor. Throws
// what the executor throws, and Error(invalid_argument) for one that leaves pieces out.
using RangeBody = void (*)(void* context, std::int64_t begin, std::int64_t end);
void for_ranges(std::int64_t count, std::int64_t grain, const Crew& crew, RangeBody body, void* context);

template<class Body> void for_ranges(std::int64_t count, std::int64_t grain, const Crew& crew, const Body& body) {
  for_ranges(
      count, grain, crew,
      [](void* context, std::int64_t begin, std::int64_t end) { (*static_cast<const Body*>(context))(begin, end); },
      const_cast<Body*>(&body));
}

} // namespace bilogp::cpu
