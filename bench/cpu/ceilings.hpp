// What the machine could do at best, measured on the same memory in the same run.
#pragma once

#include <cstddef>

namespace bilogp::bench {

// Bytes of logits that a caller of these should take: eight times the last-level cache.
std::size_t bytes_beyond_caches();

// Reads all of it, on `threads` threads. The result only keeps the reads alive.
unsigned read_all(const void* data, std::size_t bytes, int threads);

// Copies all of it around the caches. Both 64-byte aligned, bytes a multiple of 1 MB.
void copy_all(const void* from, void* to, std::size_t bytes, int threads);

// Reads all of it and does `per_line` independent fused multiply-adds per 64 bytes, of the widest vectors there are:
// what remains of the read where arithmetic is issued beside it. per_line is one of fma_counts.
inline constexpr int fma_counts[] = {7, 12, 14, 24};
float multiply_all(const void* data, std::size_t bytes, int per_line, int threads);

} // namespace bilogp::bench
