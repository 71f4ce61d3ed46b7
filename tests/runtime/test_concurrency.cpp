// Calls from several threads, and calls in a child after a fork.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <mutex>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "tests/runtime/support.hpp"

using bilogp::Runtime;
using runtime_test::Batch;

TEST_CASE("concurrency: eight threads with different shapes give the reference's bits") {
  std::mutex mutex;
  std::string report;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 8; ++t)
    threads.emplace_back([t, &mutex, &report] {
      Batch batch(3 + static_cast<std::int64_t>(t), 500 + 613 * static_cast<std::int64_t>(t), t + 1);
      const Batch clean = batch;
      std::string mine;
      for (int round = 0; round < 20 && mine.empty(); ++round) {
        batch.logp = clean.logp;
        batch.lse = clean.lse;
        batch.row_state = clean.row_state;
        bilogp::LogpArgs args = batch.forward();
        args.options.threads = 1 + round % 3;
        Runtime::get("cpu").logp(args);
        mine = batch.forward_differences();
      }
      Runtime::get("cpu").logp_backward(batch.backward());
      mine += batch.gradient_differences();
      const std::scoped_lock lock(mutex);
      report += mine;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(report == "");
}

TEST_CASE("concurrency: 32 threads that need one new kernel load it once") {
  constexpr std::int64_t vocab = 4099; // of this test alone
  const auto loaded = [] {
    const std::vector<bilogp::KernelInfo> kernels = Runtime::loaded_kernels();
    return std::ranges::count_if(kernels, [](const bilogp::KernelInfo& kernel) {
      return kernel.specialization.op == bilogp::Operator::logp_forward && kernel.specialization.vocab_size == vocab;
    });
  };
  REQUIRE(loaded() == 0);
  std::barrier start(32);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 32; ++t)
    threads.emplace_back([&] {
      Batch batch(1, vocab);
      start.arrive_and_wait();
      Runtime::get("cpu").logp(batch.forward());
      if (!batch.forward_differences().empty()) ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(loaded() == 1);
}

// ThreadSanitizer does not follow a fork of a process with threads.
#if !defined(__SANITIZE_THREAD__)
TEST_CASE("concurrency: a child scores after a fork, with loaded kernels and with a new one") {
  Batch before(40, 20000);
  bilogp::LogpArgs warm = before.forward();
  warm.options.threads = 4;
  Runtime::get("cpu").logp(warm); // the pool's threads exist now
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(100);
    int code = 0;
    try {
      Batch again(40, 20000);
      bilogp::LogpArgs args = again.forward();
      args.options.threads = 4;
      Runtime::get("cpu").logp(args);
      if (again.row_state != before.row_state || again.logp != before.logp) code = 1;
      Batch fresh(2, 4111);
      args = fresh.forward();
      args.options.threads = 4;
      Runtime::get("cpu").logp(args);
      if (!fresh.forward_differences().empty()) code = 2;
    } catch (...) {
      code = 3;
    }
    ::_exit(code);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  Batch after(40, 20000);
  warm = after.forward();
  warm.options.threads = 4;
  Runtime::get("cpu").logp(warm); // the parent's threads are not disturbed
  CHECK(after.logp == before.logp);
}
#endif
