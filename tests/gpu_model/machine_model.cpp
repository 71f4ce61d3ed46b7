// The schedule: which thread goes on.
#include "tests/gpu_model/machine_model.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "tests/gpu_model/machine_internal.hpp"

namespace gpu_model {

Machine machine;

void fail(std::string text) {
  if (machine.error.empty()) machine.error = std::move(text);
}

std::string name_of(const Thread& thread) {
  return fmt::format("thread {} of block {}", thread.index, thread.block->index);
}

void fail_here(const std::string& what) {
  fail(fmt::format("{} {}", name_of(*machine.current), what));
  wait_here(Collective::none);
}

void wake(Thread& thread) {
  thread.state = State::ready;
  thread.block->ready.push_back(&thread);
}

void wait_here(Collective kind) {
  Thread& thread = *machine.current;
  thread.kind = kind;
  thread.state = State::waiting;
  thread.fiber.suspend();
}

namespace {

void run_thread() {
  (*machine.body)();
}

void start_threads(Block& block) {
  block.threads.resize(static_cast<std::size_t>(machine.launch->threads));
  int number = 0;
  bool is_slow = false;
  for (std::unique_ptr<Thread>& thread : block.threads) {
    if (thread == nullptr) thread = std::make_unique<Thread>();
    if (number % warp_lanes == 0) is_slow = machine.random() % 4 == 0;
    thread->block = &block;
    thread->index = number++;
    thread->is_slow = is_slow;
    thread->kind = Collective::none;
    thread->objects = 0;
    thread->shared_end = 0;
    thread->cluster_turn = 0;
    thread->is_in_cluster_barrier = false;
    thread->groups.assign(1, {});
    thread->fiber.start(run_thread);
    wake(*thread);
  }
}

void start_block(std::int64_t index, const std::shared_ptr<Cluster>& cluster) {
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
  block->rank = static_cast<std::uint32_t>(cluster->blocks.size());
  block->cluster = cluster;
  cluster->blocks.push_back(block.get());
  begin_shared_memory(*block);
  start_threads(*block);
  machine.resident.push_back(std::move(block));
}

void start_cluster(std::int64_t first) {
  const auto cluster = std::make_shared<Cluster>();
  for (int i = 0; i < machine.launch->cluster; ++i) start_block(first + i, cluster);
}

// Blocks stay until their whole cluster is done: others may still send to them.
void finish_thread(Thread& thread) {
  thread.state = State::done;
  ++thread.block->done;
  leave_cluster(*thread.block);
  const std::shared_ptr<Cluster> cluster = thread.block->cluster;
  if (cluster->done < machine.launch->threads * machine.launch->cluster) return;
  if (machine.last_block != nullptr && machine.last_block->cluster == cluster) machine.last_block = nullptr;
  for (const Transfer& transfer : machine.transfers)
    if (transfer.to_block->cluster == cluster) fail("a block ends before the copies into its memory do");
  for (auto& block : machine.resident)
    if (block->cluster == cluster) {
      block->cluster.reset();
      machine.idle.push_back(std::move(block));
    }
  std::erase(machine.resident, nullptr);
}

// Mostly the block of the step before: what is there to be seen between blocks is seen all the same.
Block* draw_block() {
  if (machine.last_block != nullptr && !machine.last_block->ready.empty() && machine.random() % 4 != 0)
    return machine.last_block;
  const std::size_t count = machine.resident.size(), first = machine.random() % count;
  for (std::size_t i = 0; i < count; ++i) {
    Block* block = machine.resident[(first + i) % count].get();
    if (!block->ready.empty()) return block;
  }
  return nullptr;
}

Thread& draw_thread(Block& block) {
  std::size_t drawn = machine.random() % block.ready.size();
  for (int again = 0; again < 3 && block.ready[drawn]->is_slow; ++again) drawn = machine.random() % block.ready.size();
  Thread& thread = *block.ready[drawn];
  block.ready[drawn] = block.ready.back();
  block.ready.pop_back();
  return thread;
}

// What all waiting threads wait for, each kind once.
std::string stuck_threads() {
  std::vector<std::string> waits;
  for (const auto& block : machine.resident)
    for (const auto& thread : block->threads) {
      if (thread->state != State::waiting) continue;
      std::string wait = barrier_state(*thread);
      const bool is_known = std::any_of(waits.begin(), waits.end(), [&](const std::string& known) {
        return known.substr(known.find(" waits ")) == wait.substr(wait.find(" waits "));
      });
      if (!is_known) waits.push_back(std::move(wait));
    }
  return fmt::format("{}", fmt::join(waits, "; "));
}

void step() {
  if (!machine.transfers.empty() && machine.random() % machine.transfer_delay == 0) return finish_a_transfer();
  Block* block = draw_block();
  if (block == nullptr) return machine.transfers.empty() ? fail(stuck_threads()) : finish_a_transfer();
  machine.last_block = block;
  Thread& thread = draw_thread(*block);
  machine.current = &thread;
  thread.fiber.resume();
  if (!machine.error.empty()) return;
  if (thread.fiber.is_done()) return finish_thread(thread);
  if (thread.state == State::ready) return block->ready.push_back(&thread); // interleaved
  if (thread.kind == Collective::block_barrier) return arrive_at_barrier(*block);
  if (is_warp_wide(thread.kind)) arrive_at_collective(thread);
}

} // namespace

std::string run(const Launch& launch, const std::function<void()>& thread) {
  machine.launch = &launch;
  machine.body = &thread;
  machine.random.seed(launch.seed);
  machine.error.clear();
  machine.last_block = nullptr;
  constexpr std::uint64_t delays[] = {1, 16, 256, 4096, 1U << 30};
  machine.transfer_delay = delays[machine.random() % std::size(delays)];
  machine.elected_lane = static_cast<int>(machine.random() % warp_lanes);
  machine.poison = machine.random() % 2 == 0 ? 0xff : 0x40;
  std::int64_t next = 0;
  for (;;) {
    for (; next < launch.blocks; next += launch.cluster) {
      if (!machine.resident.empty() && std::ssize(machine.resident) + launch.cluster > launch.resident_blocks) break;
      start_cluster(next);
    }
    if (machine.resident.empty() || !machine.error.empty()) break;
    step();
  }
  machine.transfers.clear();
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

void interleave() {
  if (machine.random() % 4 != 0) machine.current->fiber.suspend();
}
void interleave_seldom() {
  if (machine.random() % 64 == 0) machine.current->fiber.suspend();
}

} // namespace gpu_model
