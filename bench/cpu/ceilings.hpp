// What the machine could do: bandwidth of a plain read, measured in the same run as the kernels.
#pragma once

#include <cstddef>

namespace bilogp::bench {

// Reads `bytes` at `data` with `threads` threads, four independent streams of vector adds each, and returns a value
// that depends on all of it.
unsigned read_all(const void* data, std::size_t bytes, int threads);

} // namespace bilogp::bench
