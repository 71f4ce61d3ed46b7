#include "bench/cpu/ceilings.hpp"

#include <atomic>
#include <cstdint>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace bilogp::bench {
namespace {

using Words = std::uint64_t __attribute__((vector_size(64), may_alias));

std::uint64_t read_range(const char* begin, const char* end) {
  Words sums[4] = {};
  const auto* at = reinterpret_cast<const Words*>(begin);
  const auto* stop = reinterpret_cast<const Words*>(end);
  for (; at + 4 <= stop; at += 4) {
    __builtin_prefetch(reinterpret_cast<const char*>(at) + 4096, 0, 3);
    for (int i = 0; i < 4; ++i) sums[i] += at[i];
  }
  const Words all = sums[0] + sums[1] + sums[2] + sums[3];
  return all[0] + all[1] + all[2] + all[3] + all[4] + all[5] + all[6] + all[7];
}

} // namespace

unsigned read_all(const void* data, std::size_t bytes, int threads) {
  constexpr std::size_t piece = std::size_t{1} << 20;
  std::atomic<std::uint64_t> total{0};
  const auto* base = static_cast<const char*>(data);
  tbb::task_arena arena(threads);
  arena.execute([&] {
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, bytes / piece), [&](const tbb::blocked_range<std::size_t>& r) {
      total += read_range(base + r.begin() * piece, base + r.end() * piece);
    });
  });
  return static_cast<unsigned>(total.load());
}

} // namespace bilogp::bench
