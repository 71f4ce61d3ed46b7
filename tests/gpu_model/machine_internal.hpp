// What the parts of the host model share: threads, blocks, clusters, and the launch that is under way.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/gpu_model/fiber.hpp"
#include "tests/gpu_model/machine_model.hpp"

namespace gpu_model {

inline constexpr int warp_lanes = 32;

struct Block;

enum class State : std::uint8_t { ready, waiting, done };

// A copy of a thread's own, of a vector or of zeros.
struct VectorCopy {
  std::uint32_t to = 0;
  const void* from = nullptr;
  bool is_zero = false;
};

struct Thread {
  Fiber fiber;
  Block* block = nullptr;
  int index = 0;
  bool is_slow = false; // drawn less often
  State state = State::ready;
  Collective kind = Collective::none;
  std::uint32_t value = 0;
  int argument = 0;
  std::size_t objects = 0;
  std::uint32_t shared_end = 0; // of what it has asked for
  std::uint64_t cluster_turn = 0;
  bool is_in_cluster_barrier = false;
  std::vector<std::vector<VectorCopy>> groups; // the last one is open
};

struct Object {
  std::unique_ptr<char[]> memory; // aligned as operator new does: to 16 bytes
  std::size_t size = 0;
};

// A barrier of shared memory.
struct SharedBarrier {
  std::uint32_t count = 0, pending = 0;
  std::int64_t bytes = 0; // that are missing in this phase
  std::uint32_t phase = 0;
  bool seen = true; // the end of the last phase, by somebody who waited
  std::vector<Thread*> waiting;
};

struct NamedBarrier {
  int expected = 0, arrived = 0;
  std::vector<Thread*> waiting;
};

struct Cluster {
  std::vector<Block*> blocks; // by rank
  std::uint64_t turn = 0;     // of its barrier
  int arrived = 0, done = 0;  // threads
  std::vector<Thread*> waiting;
};

struct FreeSharedMemory {
  void operator()(unsigned char* memory) const;
};

struct Block {
  std::int64_t index = 0;
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<Thread*> ready;
  std::vector<Object> objects;
  int waiting = 0; // at the block's barrier
  int done = 0;
  std::shared_ptr<Cluster> cluster;
  std::uint32_t rank = 0;
  std::unique_ptr<unsigned char, FreeSharedMemory> shared;
  std::uint32_t shared_end = 0;
  std::unordered_map<std::uint32_t, SharedBarrier> barriers; // by address
  std::array<NamedBarrier, 16> named;
};

// What an engine still has to write: global memory, or words that a thread has sent.
struct Transfer {
  Block* to_block = nullptr;
  std::uint32_t to = 0, bytes = 0, barrier = 0;
  const void* from = nullptr; // null: the words
  std::array<std::uint32_t, 4> words{};
};

// The launch that is under way.
struct Machine {
  const Launch* launch = nullptr;
  const std::function<void()>* body = nullptr;
  std::mt19937_64 random;
  std::vector<std::unique_ptr<Block>> resident;
  std::vector<std::unique_ptr<Block>> idle; // to use again: stacks cost time
  Block* last_block = nullptr;
  std::vector<Transfer> transfers;
  std::uint64_t transfer_delay = 1; // steps between two transfers' ends, about
  int elected_lane = 0;
  int poison = 0xff; // byte that is where a copy has not come
  Thread* current = nullptr;
  std::string error;
};
extern Machine machine;

std::string name_of(const Thread& thread);
// The launch ends with this error.
void fail(std::string text);
// From inside of a thread, which must not go on.
void fail_here(const std::string& what);
void wake(Thread& thread);
// The thread waits until somebody wakes it.
void wait_here(Collective kind);

// Of the parts, for the schedule.
void arrive_at_barrier(Block& block);
void arrive_at_collective(const Thread& thread);
void leave_cluster(Block& block); // a thread ends
void begin_shared_memory(Block& block);
void finish_a_transfer();
std::string barrier_state(const Thread& thread); // what a thread waits for

} // namespace gpu_model
