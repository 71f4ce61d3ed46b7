#include "bench/cpu/ceilings.hpp"

#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace bilogp::bench {
namespace {

constexpr std::size_t piece = std::size_t{1} << 20;
constexpr std::size_t near = 1024;
constexpr std::size_t far = 6144;
using Words = std::uint64_t __attribute__((vector_size(64), may_alias));

#if defined(__AVX512F__)
constexpr std::size_t vector_bytes = 64;
#else
constexpr std::size_t vector_bytes = 32;
#endif
using Floats = float __attribute__((vector_size(vector_bytes), may_alias));

void prefetch(const char* at) {
  __builtin_prefetch(at + near, 0, 3);
  __builtin_prefetch(at + far, 0, 2);
}

std::uint64_t read_range(const char* begin, const char* end) {
  Words sums[4] = {};
  for (const char* at = begin; at + sizeof sums <= end; at += sizeof sums) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      prefetch(at + i * sizeof(Words));
      sums[i] |= *reinterpret_cast<const Words*>(at + i * sizeof(Words));
    }
  }
  const Words all = sums[0] | sums[1] | sums[2] | sums[3];
  return all[0] | all[1] | all[2] | all[3] | all[4] | all[5] | all[6] | all[7];
}

void store_around_caches(char* to, const char* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX__)
  for (int i = 0; i < 64; i += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
#else
  *reinterpret_cast<Words*>(to) = *reinterpret_cast<const Words*>(from);
#endif
}

void copy_range(const char* from, char* to, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) {
    prefetch(from + i);
    store_around_caches(to + i, from + i);
  }
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Twelve chains: more than latency times throughput of any machine here.
template<int PerLine> float multiply_range(const char* begin, const char* end) {
  constexpr int chains = 12;
  constexpr int count = PerLine * static_cast<int>(64 / vector_bytes);
  Floats sums[chains];
  for (Floats& sum : sums) sum = Floats{} + 0.5F;
  const Floats factor = Floats{} + 0.999F;
  for (const char* at = begin; at + 64 <= end; at += 64) {
    prefetch(at);
    const Floats x = *reinterpret_cast<const Floats*>(at);
#pragma GCC unroll 64
    for (int i = 0; i < count; ++i) sums[i % chains] = sums[i % chains] * factor + x;
  }
  float total = 0;
  for (const Floats& sum : sums) total += sum[0];
  return total;
}

float multiply_range(const char* begin, const char* end, int per_line) {
  switch (per_line) {
  case 7:
    return multiply_range<7>(begin, end);
  case 12:
    return multiply_range<12>(begin, end);
  case 14:
    return multiply_range<14>(begin, end);
  default:
    return multiply_range<24>(begin, end);
  }
}

template<class Body> void each_piece(std::size_t bytes, int threads, const Body& body) {
  tbb::task_arena arena(threads);
  arena.execute([&] {
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, bytes / piece),
                      [&](const tbb::blocked_range<std::size_t>& r) { body(r.begin() * piece, r.end() * piece); });
  });
}

} // namespace

std::size_t bytes_beyond_caches() {
  const long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::size_t cache = last_level > 0 ? static_cast<std::size_t>(last_level) : std::size_t{64} << 20;
  return std::clamp<std::size_t>(8 * cache, std::size_t{600} << 20, std::size_t{4096} << 20) / piece * piece;
}

unsigned read_all(const void* data, std::size_t bytes, int threads) {
  std::atomic<std::uint64_t> total{0};
  const auto* base = static_cast<const char*>(data);
  each_piece(bytes, threads,
             [&](std::size_t begin, std::size_t end) { total += read_range(base + begin, base + end); });
  return static_cast<unsigned>(total.load());
}

void copy_all(const void* from, void* to, std::size_t bytes, int threads) {
  each_piece(bytes, threads, [&](std::size_t begin, std::size_t end) {
    copy_range(static_cast<const char*>(from) + begin, static_cast<char*>(to) + begin, end - begin);
  });
}

float multiply_all(const void* data, std::size_t bytes, int per_line, int threads) {
  std::atomic<float> total{0};
  const auto* base = static_cast<const char*>(data);
  each_piece(bytes, threads, [&](std::size_t begin, std::size_t end) {
    const float sum = multiply_range(base + begin, base + end, per_line);
    total.store(sum, std::memory_order_relaxed);
  });
  return total.load();
}

} // namespace bilogp::bench
