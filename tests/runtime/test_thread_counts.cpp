// How many threads a process gets from the library: children, since the pool and its size are a process's own.
#include <sched.h>

#include <barrier>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "tests/runtime/support.hpp"
#include "tests/tools/child_process.hpp"

using bilogp::Runtime;
using runtime_test::Batch;

namespace {

int say_threads_of_one_core() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return 2;
  std::size_t core = 0;
  while (!CPU_ISSET(core, &mask)) ++core;
  CPU_ZERO(&mask);
  CPU_SET(core, &mask);
  if (::sched_setaffinity(0, sizeof mask, &mask) != 0) return 2;
  std::printf("threads: %d\n", Runtime::num_threads());
  return 0;
}

std::ptrdiff_t threads_of_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

// Callers at work side by side, as those of an OpenMP region or of a framework's own pool; says how many threads came
// to them.
int count_workers() {
  constexpr int callers = 8;
  std::barrier together(callers + 1);
  std::vector<std::string> differences(callers);
  std::vector<std::thread> threads;
  for (std::string& difference : differences)
    threads.emplace_back([&] {
      Batch batch(40, 5000);
      together.arrive_and_wait(); // all are there
      together.arrive_and_wait(); // and counted
      for (int round = 0; round < 10; ++round) Runtime::get("cpu").logp(batch.forward());
      difference = batch.forward_differences();
      together.arrive_and_wait(); // counted again
      together.arrive_and_wait();
    });
  together.arrive_and_wait();
  const std::ptrdiff_t before = threads_of_process();
  together.arrive_and_wait();
  together.arrive_and_wait();
  const std::ptrdiff_t after = threads_of_process();
  together.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  for (const std::string& difference : differences) std::printf("%s", difference.c_str());
  std::printf("workers: %d\n", static_cast<int>(after - before));
  return 0;
}

const runtime_test::Child child_core("threads_of_one_core", say_threads_of_one_core);
const runtime_test::Child child_workers("count_workers", count_workers);

std::string run(const char* name, const char* threads) {
  const bilogp::test::ChildResult result = bilogp::test::run_child({runtime_test::this_program(), "--child", name},
                                                                   {.environment = {{"BILOGP_NUM_THREADS", threads}}});
  CHECK(result.exit_code == 0);
  return result.out + result.err;
}

} // namespace

TEST_CASE("thread counts: the affinity mask is followed, unless BILOGP_NUM_THREADS says otherwise") {
  CHECK(run("threads_of_one_core", "") == "threads: 1\n");
  CHECK(run("threads_of_one_core", "5") == "threads: 5\n");
}

TEST_CASE("thread counts: callers on many threads share one pool, of the size asked for") {
  CHECK(run("count_workers", "1") == "workers: 0\n");
  const std::string said = run("count_workers", "3"); // a caller works along with them
  CAPTURE(said);
  CHECK((said == "workers: 2\n" || said == "workers: 1\n"));
}
