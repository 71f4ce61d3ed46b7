#include "tests/gpu_model/shared_model.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "tests/gpu_model/machine_internal.hpp"

namespace gpu_model {
namespace {

constexpr std::uint32_t offset_mask = (1U << rank_shift) - 1;
constexpr std::int64_t most_missing_bytes = (1 << 20) - 1;

// Bytes of a block that nobody may ask for at once, and what is asked for must lie there.
unsigned char* place_in(Block& block, std::uint32_t address, std::uint32_t size, std::uint32_t alignment) {
  const std::uint32_t offset = address & offset_mask;
  if (offset % alignment != 0)
    fail_here(fmt::format("uses {} bytes of shared memory at {:#x}, which is misaligned", size, address));
  if (offset < reserved_shared_bytes || offset + size > block.shared_end)
    fail_here(fmt::format("uses {} bytes of shared memory at {:#x}, of which there are {:#x}", size, address,
                          block.shared_end));
  return block.shared.get() + offset;
}

Block& block_of(std::uint32_t address) {
  const std::vector<Block*>& blocks = machine.current->block->cluster->blocks;
  const std::uint32_t rank = address >> rank_shift;
  if (rank >= blocks.size()) fail_here(fmt::format("uses shared memory at {:#x} of no block", address));
  return *blocks[rank];
}

Block& own_block(std::uint32_t address) {
  Block& block = *machine.current->block;
  if (address >> rank_shift != block.rank)
    fail_here(fmt::format("uses {:#x}, another block's shared memory, as its own", address));
  return block;
}

SharedBarrier& barrier_at(Block& block, std::uint32_t address) {
  const auto found = block.barriers.find(address & offset_mask);
  if (found == block.barriers.end()) fail_here(fmt::format("uses a barrier at {:#x} where there is none", address));
  return found->second;
}

// Ends the phase when nothing is missing.
void turn(SharedBarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.phase ^= 1;
  barrier.seen = false;
  barrier.pending = barrier.count;
  for (Thread* thread : barrier.waiting) wake(*thread);
  barrier.waiting.clear();
}

void take_arrivals(SharedBarrier& barrier, std::uint32_t address, std::uint32_t arrivals) {
  if (arrivals == 0 || arrivals > barrier.pending)
    fail_here(fmt::format("arrives {} times at the barrier at {:#x}, which waits for {}", arrivals, address,
                          barrier.pending));
  // No fault of the device's, but who may arrive before the last phase was seen may arrive twice as well; synccheck
  // of compute-sanitizer asks for the same.
  if (!barrier.seen)
    fail_here(fmt::format("arrives at the barrier at {:#x}, for whose last phase nobody has waited", address));
  barrier.pending -= arrivals;
  turn(barrier);
}

void begin_transfer(Transfer transfer) {
  std::memset(transfer.to_block->shared.get() + transfer.to, machine.poison, transfer.bytes);
  machine.transfers.push_back(transfer);
  interleave();
}

} // namespace

void FreeSharedMemory::operator()(unsigned char* memory) const {
  std::free(memory);
}

void begin_shared_memory(Block& block) {
  block.barriers.clear();
  block.named = {};
  block.shared_end = reserved_shared_bytes;
  if (!machine.launch->has_shared_memory) return;
  if (block.shared == nullptr)
    block.shared.reset(static_cast<unsigned char*>(std::aligned_alloc(4096, most_shared_bytes)));
  std::memset(block.shared.get(), 0xff, most_shared_bytes);
}

void* static_shared(std::size_t size, std::uint32_t alignment) {
  Thread& thread = *machine.current;
  Block& block = *thread.block;
  const std::uint32_t before = std::max(thread.shared_end, reserved_shared_bytes);
  const std::uint32_t begin = (before + alignment - 1) / alignment * alignment;
  thread.shared_end = begin + static_cast<std::uint32_t>(size);
  if (thread.shared_end > most_shared_bytes) fail_here("asks for more shared memory than there is");
  block.shared_end = std::max(block.shared_end, thread.shared_end);
  return block.shared.get() + begin;
}

unsigned char* dynamic_shared(std::uint32_t alignment) {
  return static_cast<unsigned char*>(static_shared(machine.launch->shared_bytes, alignment));
}

std::uint32_t shared_address(const void* pointer) {
  const Block& block = *machine.current->block;
  const auto offset = static_cast<const unsigned char*>(pointer) - block.shared.get();
  return static_cast<std::uint32_t>(offset) | block.rank << rank_shift;
}

unsigned char* shared_place(std::uint32_t address, std::uint32_t size) {
  return place_in(own_block(address), address, size, size);
}

std::uint32_t address_in_block(std::uint32_t address, std::uint32_t rank) {
  const std::uint32_t there = (address & offset_mask) | rank << rank_shift;
  block_of(there);
  return there;
}

void barrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  Block& block = own_block(barrier);
  place_in(block, barrier, 8, 8);
  if (arrivals == 0 || arrivals >= 1U << 20) fail_here(fmt::format("makes a barrier for {} arrivals", arrivals));
  SharedBarrier& made = block.barriers[barrier & offset_mask];
  if (!made.waiting.empty()) fail_here("initialises a barrier that others wait at");
  made = {};
  made.count = made.pending = arrivals;
}

void barrier_arrive(std::uint32_t barrier, std::uint32_t arrivals) {
  take_arrivals(barrier_at(own_block(barrier), barrier), barrier, arrivals);
  interleave();
}

void barrier_expect(std::uint32_t barrier, std::uint32_t bytes) {
  SharedBarrier& at = barrier_at(own_block(barrier), barrier);
  at.bytes += bytes;
  if (at.bytes > most_missing_bytes) fail_here("expects more bytes than a barrier counts");
  take_arrivals(at, barrier, 1);
  interleave();
}

void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  Thread& thread = *machine.current;
  SharedBarrier& at = barrier_at(own_block(barrier), barrier);
  // Woken, a thread may come so late that another phase has gone by: it waits on, as on the device.
  while (at.phase == parity) {
    at.waiting.push_back(&thread);
    thread.value = barrier;
    thread.argument = static_cast<int>(parity);
    wait_here(Collective::shared_barrier);
  }
  at.seen = true;
}

void copy_in(std::uint32_t to, const void* from, std::uint32_t bytes, std::uint32_t barrier) {
  Block& block = own_block(to);
  place_in(block, to, bytes, 16);
  barrier_at(own_block(barrier), barrier);
  if (bytes == 0 || bytes % 16 != 0) fail_here(fmt::format("copies {} bytes at once", bytes));
  check_copy(from, bytes);
  begin_transfer({&block, to & offset_mask, bytes, barrier & offset_mask, from, {}});
}

void send(std::uint32_t to, std::uint32_t barrier, const std::uint32_t* words, std::uint32_t count) {
  Block& block = block_of(to);
  if (to >> rank_shift != barrier >> rank_shift) fail_here("sends to one block and counts in another");
  if (block.done == machine.launch->threads) fail_here("sends to a block that has ended");
  place_in(block, to, count * 4, count * 4);
  barrier_at(block, barrier);
  Transfer transfer{&block, to & offset_mask, count * 4, barrier & offset_mask, nullptr, {}};
  std::memcpy(transfer.words.data(), words, transfer.bytes);
  begin_transfer(transfer);
}

void finish_a_transfer() {
  const std::size_t drawn = machine.random() % machine.transfers.size();
  const Transfer done = machine.transfers[drawn];
  machine.transfers[drawn] = machine.transfers.back();
  machine.transfers.pop_back();
  Block& block = *done.to_block;
  if (block.done == machine.launch->threads) return fail("a block ends before what is sent to it arrives");
  std::memcpy(block.shared.get() + done.to, done.from != nullptr ? done.from : done.words.data(), done.bytes);
  SharedBarrier& barrier = block.barriers.at(done.barrier);
  barrier.bytes -= done.bytes;
  if (barrier.bytes < -most_missing_bytes) return fail("more bytes arrive than a barrier counts");
  turn(barrier);
}

void copy_vector(bool condition, std::uint32_t to, const void* from) {
  if (condition) check_copy(from, 16);
  std::memset(shared_place(to, 16), machine.poison, 16);
  machine.current->groups.back().push_back({to, from, !condition});
}
void close_group_of_vectors() {
  machine.current->groups.emplace_back();
}
// As late as they may be.
void wait_for_vectors(int newer) {
  auto& groups = machine.current->groups;
  while (std::ssize(groups) > newer + 1) {
    for (const VectorCopy& copy : groups.front()) {
      unsigned char* to = shared_place(copy.to, 16);
      if (copy.is_zero)
        std::memset(to, 0, 16);
      else
        std::memcpy(to, copy.from, 16);
    }
    groups.erase(groups.begin());
  }
}

std::string barrier_state(const Thread& thread) {
  if (thread.kind == Collective::shared_barrier) {
    const SharedBarrier& at = thread.block->barriers.at(thread.value & offset_mask);
    return fmt::format("{} waits for parity {} of the barrier at {:#x}, where {} arrivals and {} bytes are missing",
                       name_of(thread), thread.argument, thread.value, at.pending, at.bytes);
  }
  const char* what = thread.kind == Collective::block_barrier     ? "barrier"
                     : thread.kind == Collective::named_barrier   ? "named barrier"
                     : thread.kind == Collective::cluster_barrier ? "cluster's barrier"
                                                                  : "warp collective";
  return fmt::format("{} waits in a {} that others never reach", name_of(thread), what);
}

} // namespace gpu_model
