// The host model of shared memory, barriers, copies and clusters: that it does what a device does, and sees faults.
#include <doctest/doctest.h>

#include <cstring>

#include "tests/gpu_model/shared_model.hpp"

using namespace gpu_model;

namespace {

bool has(const std::string& text, const char* part) {
  CAPTURE(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

// Where the launch's own memory begins, behind which these tests put their barriers.
constexpr std::uint32_t base = reserved_shared_bytes, barrier = base + 1024;

std::string run_warps(int warps, const std::function<void()>& thread, std::uint64_t seed = 1, int cluster = 1) {
  Launch launch;
  launch.threads = 32 * warps;
  launch.seed = seed;
  launch.blocks = launch.cluster = cluster;
  launch.has_shared_memory = true;
  launch.shared_bytes = 2048;
  return run(launch, [&] {
    dynamic_shared(1024);
    thread();
  });
}

// In the thread's own block.
std::uint32_t here(std::uint32_t address) {
  return address | cluster_rank() << rank_shift;
}

void make_barrier(std::uint32_t arrivals) {
  if (thread_of_block() == 0) barrier_init(here(barrier), arrivals);
  collective(Collective::block_barrier, 0, 0);
}

std::uint32_t word_at(std::uint32_t address) {
  std::uint32_t word = 0;
  std::memcpy(&word, shared_place(here(address), 4), 4);
  return word;
}

alignas(16) const std::uint32_t source[8] = {1, 2, 3, 4, 5, 6, 7, 8};

} // namespace

TEST_SUITE_BEGIN("model");

TEST_CASE("a phase ends with its last arrival, and waits are by parity") {
  int early = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    int arrived = 0;
    CHECK(run_warps(
              2,
              [&] {
                make_barrier(32);
                for (std::uint32_t phase = 0; phase < 3; ++phase) {
                  if (thread_of_block() < 32) {
                    ++arrived;
                    barrier_arrive(barrier, 1);
                  }
                  barrier_wait(barrier, phase & 1);
                  if (arrived < 32 * static_cast<int>(phase + 1)) ++early;
                  collective(Collective::block_barrier, 0, 0);
                }
              },
              seed)
              .empty());
  }
  CHECK(early == 0);
}

TEST_CASE("arrivals that nobody waits for") {
  const std::string error = run_warps(1, [] {
    make_barrier(2);
    if (thread_of_block() == 7) barrier_arrive(barrier, 3);
  });
  has(error, "which waits for");
}

TEST_CASE("a phase that nobody waits for") {
  has(run_warps(1,
                [] {
                  make_barrier(32);
                  barrier_arrive(barrier, 1);
                  collective(Collective::block_barrier, 0, 0);
                  barrier_arrive(barrier, 1);
                }),
      "nobody has waited");
}

TEST_CASE("a wait without end says what is missing") {
  const std::string error = run_warps(2, [] {
    make_barrier(2);
    if (thread_of_block() == 0) barrier_expect(barrier, 48);
    barrier_wait(barrier, 0);
  });
  has(error, "waits for parity 0 of the barrier at 0x800, where 1 arrivals and 48 bytes are missing");
}

TEST_CASE("a barrier that is none") {
  has(run_warps(1, [] { barrier_arrive(base, 1); }), "where there is none");
}

TEST_CASE("what is copied is there behind the wait, and nothing before the copy ends") {
  int early = 0;
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Launch launch;
    launch.threads = 64;
    launch.seed = seed;
    launch.has_shared_memory = true;
    launch.shared_bytes = 2048;
    launch.memory = {{source, sizeof source, false}};
    CHECK(run(launch, [&] {
            dynamic_shared(1024);
            make_barrier(1);
            if (thread_of_block() == 0) {
              barrier_expect(barrier, 32);
              copy_in(base + 64, source + 4, 16, barrier);
              copy_in(base, source, 16, barrier);
            }
            if (word_at(base) != 1) ++early;
            barrier_wait(barrier, 0);
            if (word_at(base) != 1 || word_at(base + 64) != 5) ++wrong;
          }).empty());
  }
  CHECK(early > 0);
  CHECK(wrong == 0);
}

TEST_CASE("copies of memory that a launch does not name, or to an odd place") {
  has(run_warps(1, [] { make_barrier(1), copy_in(base, source, 16, barrier); }), "was not given");
  has(run_warps(1, [] { make_barrier(1), copy_in(base + 8, source, 16, barrier); }), "misaligned");
  has(run_warps(1, [] { make_barrier(1), copy_in(base + 2040, source, 16, barrier); }), "misaligned");
  has(run_warps(1, [] { make_barrier(1), copy_in(base + 2048, source, 16, barrier); }), "of which there are");
}

TEST_CASE("vectors of shared memory at odd places") {
  has(run_warps(1, [] { shared_place(base + 8, 16); }), "misaligned");
  has(run_warps(1, [] { shared_place(base + 2048, 4); }), "of which there are");
  has(run_warps(1, [] { shared_place(base | 1U << rank_shift, 4); }), "another block's");
}

TEST_CASE("a thread's own copies are there when it has waited for their group") {
  int wrong = 0;
  Launch launch;
  launch.has_shared_memory = true;
  launch.shared_bytes = 2048;
  launch.memory = {{source, sizeof source, false}};
  CHECK(run(launch, [&] {
          dynamic_shared(1024);
          const std::uint32_t own = base + 32 * static_cast<std::uint32_t>(thread_of_block());
          copy_vector(true, own, source);
          close_group_of_vectors();
          copy_vector(false, own + 16, nullptr);
          close_group_of_vectors();
          wait_for_vectors(1);
          if (word_at(own) != 1 || word_at(own + 16) == 0) ++wrong;
          wait_for_vectors(0);
          if (word_at(own + 16) != 0) ++wrong;
        }).empty());
  CHECK(wrong == 0);
}

TEST_CASE("blocks of a cluster send to each other") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    int wrong = 0;
    CHECK(run_warps(
              1,
              [&] {
                make_barrier(1);
                if (thread_of_block() == 0) barrier_expect(here(barrier), 24);
                cluster_arrive();
                cluster_wait();
                const std::uint32_t words[2] = {7, cluster_rank()};
                if (thread_of_block() < 3) {
                  const auto to = static_cast<std::uint32_t>(thread_of_block());
                  send(address_in_block(base + 8 * cluster_rank(), to), address_in_block(barrier, to), words, 2);
                }
                barrier_wait(here(barrier), 0);
                for (std::uint32_t rank = 0; rank < 3; ++rank)
                  if (word_at(base + 8 * rank + 4) != rank) ++wrong;
              },
              seed, 3)
              .empty());
    CHECK(wrong == 0);
  }
}

TEST_CASE("the cluster's barrier") {
  has(run_warps(1, [] { cluster_arrive(), cluster_arrive(); }, 1, 2), "twice");
  has(run_warps(1, [] { cluster_wait(); }, 1, 2), "without having arrived");
  CHECK(run_warps(
            1,
            [] { // those that have ended count as arrived
              if (cluster_rank() == 1) return;
              cluster_arrive();
              cluster_wait();
            },
            1, 2)
            .empty());
}

TEST_CASE("named barriers") {
  int early = 0;
  int arrived = 0;
  CHECK(run_warps(3, [&] {
          if (thread_of_block() < 32) {
            ++arrived;
            named_barrier_arrive(3, 96);
          } else {
            named_barrier_wait(3, 96);
            if (arrived < 32) ++early;
          }
        }).empty());
  CHECK(early == 0);
  has(run_warps(2, [] { named_barrier_wait(1, thread_of_block() < 32 ? 64 : 96); }), "counts");
  has(run_warps(2, [] { named_barrier_wait(1, 96); }), "named barrier that others never reach");
}

TEST_SUITE_END();
