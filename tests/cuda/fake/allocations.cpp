// Counts what this process allocates with operator new, the library among it.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/cuda/fake/host_calls.hpp"

namespace {
std::atomic<std::int64_t> count{0};
} // namespace

namespace fake {
std::int64_t host_allocations() {
  return count;
}
} // namespace fake

void* operator new(std::size_t size) {
  ++count;
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
