#include "tests/gpu_model/machine_model.hpp"

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "tests/gpu_model/fiber.hpp"

namespace gpu_model {
namespace {

constexpr int warp_lanes = 32;

struct Block;

enum class State : std::uint8_t { ready, waiting, done };

struct Thread {
  Fiber fiber;
  Block* block = nullptr;
  int index = 0;
  State state = State::ready;
  Collective kind = Collective::none;
  std::uint32_t value = 0;
  int argument = 0;
  std::size_t objects = 0;
};

struct Object {
  std::unique_ptr<char[]> memory; // aligned as operator new does: to 16 bytes
  std::size_t size = 0;
};

struct Block {
  std::int64_t index = 0;
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<Object> objects;
  int waiting = 0; // at the block's barrier
  int done = 0;
};

// The launch that is under way.
struct Machine {
  const Launch* launch = nullptr;
  const std::function<void()>* body = nullptr;
  std::mt19937_64 random;
  std::vector<Thread*> ready;
  std::vector<std::unique_ptr<Block>> resident;
  std::vector<std::unique_ptr<Block>> idle; // to use again: stacks cost time
  Thread* current = nullptr;
  std::string error;
};
Machine machine;

void fail(std::string text) {
  if (machine.error.empty()) machine.error = std::move(text);
}

std::string name_of(const Thread& thread) {
  return fmt::format("thread {} of block {}", thread.index, thread.block->index);
}

void run_thread() {
  (*machine.body)();
}

void start_block(std::int64_t index) {
  std::unique_ptr<Block> block;
  if (machine.idle.empty()) {
    block = std::make_unique<Block>();
  } else {
    block = std::move(machine.idle.back());
    machine.idle.pop_back();
  }
  block->index = index;
  block->waiting = block->done = 0;
  for (Object& object : block->objects) std::memset(object.memory.get(), 0xff, object.size);
  block->threads.resize(static_cast<std::size_t>(machine.launch->threads));
  int number = 0;
  for (std::unique_ptr<Thread>& thread : block->threads) {
    if (thread == nullptr) thread = std::make_unique<Thread>();
    thread->block = block.get();
    thread->index = number++;
    thread->state = State::ready;
    thread->kind = Collective::none;
    thread->objects = 0;
    thread->fiber.start(run_thread);
    machine.ready.push_back(thread.get());
  }
  machine.resident.push_back(std::move(block));
}

void wake(Thread& thread) {
  thread.state = State::ready;
  machine.ready.push_back(&thread);
}

Thread& lane_of(const Thread& thread, int lane) {
  const int index = thread.index / warp_lanes * warp_lanes + lane;
  return *thread.block->threads[static_cast<std::size_t>(index)];
}

// A thread waits for its block; releases all once every thread is there.
void arrive_at_barrier(Block& block) {
  if (++block.waiting < machine.launch->threads) return;
  block.waiting = 0;
  for (const auto& thread : block.threads) wake(*thread);
}

// A lane waits for its warp; once all lanes are there, each gets its result.
void arrive_at_collective(const Thread& thread) {
  std::uint32_t values[warp_lanes];
  std::uint32_t ballot = 0;
  for (int lane = 0; lane < warp_lanes; ++lane) {
    const Thread& other = lane_of(thread, lane);
    if (other.state != State::waiting || other.kind == Collective::block_barrier) return;
    values[lane] = other.value;
    ballot |= static_cast<std::uint32_t>(other.value != 0) << lane;
  }
  for (int lane = 0; lane < warp_lanes; ++lane) {
    Thread& other = lane_of(thread, lane);
    if (other.kind != thread.kind || (thread.kind == Collective::shuffle_xor && other.argument != thread.argument))
      fail(fmt::format("{} and {} are in different warp collectives", name_of(thread), name_of(other)));
    if (thread.kind == Collective::shuffle_xor) other.value = values[(lane ^ other.argument) % warp_lanes];
    if (thread.kind == Collective::shuffle_from) other.value = values[other.argument & (warp_lanes - 1)];
    if (thread.kind == Collective::ballot) other.value = ballot;
    wake(other);
  }
}

void finish_thread(Thread& thread) {
  thread.state = State::done;
  if (++thread.block->done < machine.launch->threads) return;
  for (auto& block : machine.resident)
    if (block.get() == thread.block) {
      machine.idle.push_back(std::move(block));
      block = std::move(machine.resident.back());
      machine.resident.pop_back();
      return;
    }
}

void step() {
  const std::size_t drawn = machine.random() % machine.ready.size();
  Thread& thread = *machine.ready[drawn];
  machine.ready[drawn] = machine.ready.back();
  machine.ready.pop_back();
  machine.current = &thread;
  thread.fiber.resume();
  if (!machine.error.empty()) return;
  if (thread.fiber.is_done()) return finish_thread(thread);
  if (thread.state == State::ready) return machine.ready.push_back(&thread); // interleaved
  if (thread.kind == Collective::block_barrier) return arrive_at_barrier(*thread.block);
  arrive_at_collective(thread);
}

// Ends the launch from inside of a thread, which must not go on.
void fail_here(const std::string& what) {
  fail(fmt::format("{} {}", name_of(*machine.current), what));
  machine.current->state = State::waiting;
  machine.current->fiber.suspend();
}

void check_access(const void* address, std::size_t size, bool writes) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at % size != 0) fail_here(fmt::format("uses an address as if it were aligned to {} bytes", size));
  for (const Memory& memory : machine.launch->memory) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.begin);
    if (at >= begin && at + size <= begin + memory.size && (memory.is_writable || !writes)) return;
  }
  fail_here(fmt::format("{} {} bytes of memory that it was not given", writes ? "writes" : "reads", size));
}

std::string stuck_threads() {
  for (const auto& block : machine.resident)
    for (const auto& thread : block->threads)
      if (thread->state == State::waiting)
        return fmt::format("{} waits in a {} that others never reach", name_of(*thread),
                           thread->kind == Collective::block_barrier ? "barrier" : "warp collective");
  return "threads are stuck";
}

} // namespace

std::string run(const Launch& launch, const std::function<void()>& thread) {
  machine.launch = &launch;
  machine.body = &thread;
  machine.random.seed(launch.seed);
  machine.error.clear();
  std::int64_t next = 0;
  for (;;) {
    while (next < launch.blocks && std::ssize(machine.resident) < launch.resident_blocks) start_block(next++);
    if (machine.resident.empty()) break;
    if (machine.ready.empty()) fail(stuck_threads());
    if (!machine.error.empty()) break;
    step();
  }
  machine.ready.clear();
  machine.resident.clear(); // of a failed launch
  machine.idle.clear();
  return machine.error;
}

int thread_of_block() {
  return machine.current->index;
}
std::int64_t block_of_grid() {
  return machine.current->block->index;
}
std::int64_t grid_blocks() {
  return machine.launch->blocks;
}

std::uint32_t collective(Collective kind, std::uint32_t value, int argument) {
  Thread& thread = *machine.current;
  thread.kind = kind;
  thread.value = value;
  thread.argument = argument;
  thread.state = State::waiting;
  thread.fiber.suspend();
  return thread.value;
}

void interleave() {
  if (machine.random() % 4 != 0) machine.current->fiber.suspend();
}

void* block_object(std::size_t size) {
  Thread& thread = *machine.current;
  Block& block = *thread.block;
  const std::size_t index = thread.objects++;
  if (index == block.objects.size()) {
    block.objects.push_back({std::unique_ptr<char[]>(new char[size]), size});
    std::memset(block.objects.back().memory.get(), 0xff, size);
  }
  if (block.objects[index].size != size) fail_here("asks for the block's objects in another order");
  return block.objects[index].memory.get();
}

void check_read(const void* address, std::size_t size) {
  check_access(address, size, false);
}
void check_write(const void* address, std::size_t size) {
  check_access(address, size, true);
}

} // namespace gpu_model
