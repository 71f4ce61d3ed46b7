// Threads that wait for each other by name: of a warp, of a block, of a cluster. And the memory that they were given.
#include <cstring>

#include <fmt/format.h>

#include "tests/gpu_model/machine_internal.hpp"
#include "tests/gpu_model/shared_model.hpp"

namespace gpu_model {
namespace {

Thread& lane_of(const Thread& thread, int lane) {
  const int index = thread.index / warp_lanes * warp_lanes + lane;
  return *thread.block->threads[static_cast<std::size_t>(index)];
}

void wake_all(std::vector<Thread*>& threads) {
  for (Thread* thread : threads) wake(*thread);
  threads.clear();
}

// Threads that have ended count as arrived.
void turn_cluster_barrier(Cluster& cluster) {
  const int all = machine.launch->threads * static_cast<int>(cluster.blocks.size());
  if (cluster.arrived == 0 || cluster.arrived + cluster.done < all) return;
  cluster.arrived = 0;
  ++cluster.turn;
  wake_all(cluster.waiting);
}

NamedBarrier& arrive_at_named(std::uint32_t name, std::uint32_t threads) {
  NamedBarrier& barrier = machine.current->block->named.at(name);
  if (barrier.arrived == 0) barrier.expected = static_cast<int>(threads);
  if (threads % warp_lanes != 0 || barrier.expected != static_cast<int>(threads))
    fail_here(fmt::format("counts {} threads at barrier {}, others {}", threads, name, barrier.expected));
  ++barrier.arrived;
  return barrier;
}

void check_access(const void* address, std::size_t size, std::size_t alignment, bool writes) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at % alignment != 0) fail_here(fmt::format("uses an address as if it were aligned to {} bytes", alignment));
  for (const Memory& memory : machine.launch->memory) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.begin);
    if (at >= begin && at + size <= begin + memory.size && (memory.is_writable || !writes)) return;
  }
  fail_here(fmt::format("{} {} bytes of memory that it was not given", writes ? "writes" : "reads", size));
}

} // namespace

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
    if (other.state != State::waiting || !is_warp_wide(other.kind)) return;
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

void leave_cluster(Block& block) {
  ++block.cluster->done;
  turn_cluster_barrier(*block.cluster);
}

std::uint32_t collective(Collective kind, std::uint32_t value, int argument) {
  Thread& thread = *machine.current;
  thread.value = value;
  thread.argument = argument;
  wait_here(kind);
  return thread.value;
}

bool is_elected_lane() {
  collective(Collective::warp_barrier, 0, 0);
  return machine.current->index % warp_lanes == machine.elected_lane;
}

void named_barrier_arrive(std::uint32_t name, std::uint32_t threads) {
  NamedBarrier& barrier = arrive_at_named(name, threads);
  if (barrier.arrived < barrier.expected) return;
  barrier.arrived = 0;
  wake_all(barrier.waiting);
}
void named_barrier_wait(std::uint32_t name, std::uint32_t threads) {
  NamedBarrier& barrier = arrive_at_named(name, threads);
  barrier.waiting.push_back(machine.current);
  machine.current->argument = static_cast<int>(name);
  if (barrier.arrived == barrier.expected) {
    // Waking comes behind waiting, which this thread does in a moment.
    barrier.arrived = 0;
    barrier.waiting.pop_back();
    wake_all(barrier.waiting);
    return interleave();
  }
  wait_here(Collective::named_barrier);
}

std::uint32_t cluster_rank() {
  return machine.current->block->rank;
}
int cluster_blocks() {
  return machine.launch->cluster;
}
void cluster_arrive() {
  Thread& thread = *machine.current;
  if (thread.is_in_cluster_barrier) fail_here("arrives at the cluster's barrier twice");
  thread.is_in_cluster_barrier = true;
  thread.cluster_turn = thread.block->cluster->turn;
  ++thread.block->cluster->arrived;
  turn_cluster_barrier(*thread.block->cluster);
  interleave();
}
void cluster_wait() {
  Thread& thread = *machine.current;
  if (!thread.is_in_cluster_barrier) fail_here("waits at the cluster's barrier without having arrived");
  thread.is_in_cluster_barrier = false;
  if (thread.block->cluster->turn != thread.cluster_turn) return;
  thread.block->cluster->waiting.push_back(&thread);
  wait_here(Collective::cluster_barrier);
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
  check_access(address, size, size, false);
}
void check_write(const void* address, std::size_t size) {
  check_access(address, size, size, true);
}
void check_copy(const void* address, std::size_t size) {
  check_access(address, size, 16, false);
}

} // namespace gpu_model
