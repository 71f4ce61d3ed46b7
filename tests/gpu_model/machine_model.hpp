// A host model of a GPU: runs a kernel's threads as fibers, in an order drawn from a seed, and checks what a device
// leaves undefined.
//
// Threads are switched at barriers, warp collectives and atomic operations. Reported as errors: a barrier or a
// collective that a thread of the block or warp never reaches, lanes of a warp in different collectives, misaligned
// accesses, and accesses outside of the memory that a launch names, byte by byte. A block's memory is filled with NaN
// bytes before the block begins. Several blocks of a grid are under way at a time. One launch at a time per process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gpu_model {

// What kernels may read, and write where it says so.
struct Memory {
  const void* begin = nullptr;
  std::size_t size = 0;
  bool is_writable = false;
};

struct Launch {
  std::int64_t blocks = 1;
  int threads = 32; // a multiple of 32
  std::uint64_t seed = 0;
  int resident_blocks = 3; // under way at a time
  int cluster = 1;         // blocks that are always under way together
  bool has_shared_memory = false;
  std::size_t shared_bytes = 0; // that the launch adds to the kernel's own
  std::vector<Memory> memory;
};

// Runs `thread` once for every thread of the grid; "" or what went wrong.
std::string run(const Launch& launch, const std::function<void()>& thread);

// What threads ask and do.
enum class Collective : std::uint8_t {
  none,
  shuffle_xor,
  shuffle_from,
  ballot,
  warp_barrier,
  block_barrier,
  shared_barrier, // of shared_model.hpp, as are the following ones
  named_barrier,
  cluster_barrier
};
constexpr bool is_warp_wide(Collective kind) {
  return kind >= Collective::shuffle_xor && kind <= Collective::warp_barrier;
}

int thread_of_block();
std::int64_t block_of_grid();
std::int64_t grid_blocks();
// Waits for the other threads; the result is this lane's.
std::uint32_t collective(Collective kind, std::uint32_t value, int argument);
// Lets others run, maybe, or seldom.
void interleave();
void interleave_seldom();
// The block's object of this size, in the order in which each thread asks for its objects.
void* block_object(std::size_t size);
// Of naturally aligned items of the device's memory.
void check_read(const void* address, std::size_t size);
void check_write(const void* address, std::size_t size);
// Of any number of bytes from a multiple of sixteen on.
void check_copy(const void* address, std::size_t size);

} // namespace gpu_model
