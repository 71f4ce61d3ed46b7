// The host model itself: that it notices what a device leaves undefined.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "tests/gpu_model/machine_model.hpp"

using namespace gpu_model;

TEST_SUITE_BEGIN("model");

static std::string run_warps(int warps, const std::function<void()>& thread, std::uint64_t seed = 1) {
  Launch launch;
  launch.blocks = 2;
  launch.threads = 32 * warps;
  launch.seed = seed;
  return run(launch, thread);
}

static bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("collectives give each lane its answer") {
  std::vector<std::uint32_t> sums(std::size_t{4} * 32);
  const std::string error = run_warps(2, [&] {
    auto value = static_cast<std::uint32_t>(1) << (thread_of_block() % 32);
    for (int mask = 1; mask < 32; mask *= 2) value |= collective(Collective::shuffle_xor, value, mask);
    const std::uint32_t ballot = collective(Collective::ballot, thread_of_block() % 32 == 5 ? 1 : 0, 0);
    const std::uint32_t third = collective(Collective::shuffle_from, static_cast<std::uint32_t>(thread_of_block()), 3);
    collective(Collective::block_barrier, 0, 0);
    const bool right =
        value == 0xffffffffU && ballot == 32 && third == static_cast<std::uint32_t>(thread_of_block() / 32 * 32 + 3);
    sums[static_cast<std::size_t>(block_of_grid() * 64 + thread_of_block())] = right ? 1 : 0;
  });
  CHECK(error.empty());
  for (const std::uint32_t right : sums) CHECK(right == 1);
}

TEST_CASE("a collective that one lane does not reach") {
  const std::string error = run_warps(1, [] {
    if (thread_of_block() != 7) collective(Collective::ballot, 1, 0);
  });
  CHECK(has(error, "warp collective that others never reach"));
}

TEST_CASE("different collectives in one warp") {
  CHECK(
      has(run_warps(1, [] { collective(thread_of_block() < 9 ? Collective::ballot : Collective::warp_barrier, 1, 0); }),
          "different warp collectives"));
  CHECK(has(run_warps(1, [] { collective(Collective::shuffle_xor, 1, thread_of_block() < 9 ? 1 : 2); }),
            "different warp collectives"));
}

TEST_CASE("a barrier that one warp does not reach") {
  const std::string error = run_warps(3, [] {
    if (thread_of_block() >= 32) collective(Collective::block_barrier, 0, 0);
  });
  CHECK(has(error, "barrier that others never reach"));
}

TEST_CASE("a block's memory begins as NaN") {
  int wrong = 0;
  const std::string error = run_warps(1, [&] {
    auto* words = static_cast<std::uint32_t*>(block_object(64));
    if (words[thread_of_block() % 16] != 0xffffffffU) ++wrong;
    collective(Collective::block_barrier, 0, 0);
    words[thread_of_block() % 16] = 1;
  });
  CHECK(error.empty());
  CHECK(wrong == 0);
}

// A missing barrier shows: some order of threads reads what is not yet written.
TEST_CASE("threads run in an order of the seed's choice") {
  int too_early = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    run_warps(
        2,
        [&] {
          auto* word = static_cast<std::uint32_t*>(block_object(4));
          if (thread_of_block() == 40) *word = 1;
          if (thread_of_block() == 3 && *word != 1) ++too_early;
        },
        seed);
  CHECK(too_early > 0);
  CHECK(too_early < 40);
}

TEST_CASE("memory that a launch does not name") {
  alignas(16) char memory[64] = {};
  Launch launch;
  launch.memory = {{memory, 32, false}, {memory + 32, 16, true}};
  CHECK(run(launch, [&] { check_read(memory + 16, 16); }).empty());
  CHECK(run(launch, [&] { check_write(memory + 32, 16); }).empty());
  CHECK(has(run(launch, [&] { check_write(memory + 16, 4); }), "writes 4 bytes"));
  CHECK(has(run(launch, [&] { check_read(memory + 48, 2); }), "reads 2 bytes"));
  CHECK(has(run(launch, [&] { check_read(memory + 4, 16); }), "aligned"));
}

TEST_SUITE_END();
