// Threads: cold and warm calls at once, several devices.
#include <atomic>

#include "tests/cuda/problem.hpp"

namespace {

using cuda_test::Device;
using cuda_test::Problem;
using cuda_test::Storage;
using cuda_test::TestStream;

// Runs `rounds` fused calls on a stream of its own; the first difference, or "".
std::string run_on(const Device& device, std::int64_t columns, std::uint64_t seed, int rounds) {
  Problem problem(device, {.storage = Storage::bfloat16, .columns = columns, .rows = 5, .seed = seed});
  const TestStream stream(device);
  for (int round = 0; round < rounds; ++round) {
    problem.clear();
    problem.runtime().logp_with_gradient(problem.with_gradient(stream.get()));
    problem.runtime().logp(problem.forward(stream.get(), round % 2));
    stream.wait();
    std::string difference = problem.check_scores();
    if (difference.empty()) difference = problem.check_gradient();
    if (!difference.empty()) return difference;
  }
  return {};
}

} // namespace

TEST_SUITE_BEGIN("threads");

TEST_CASE("eight threads, whose first calls share a kernel that nobody has yet") {
  constexpr int count = 8;
  std::vector<std::string> said(count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i)
    threads.emplace_back(
        [&said, i] { said[i] = run_on(cuda_test::first_device(), 20011 + std::int64_t(i % 2), i, 20); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& difference : said) CHECK(difference == "");
}

TEST_CASE("every device, each from a thread of its own") {
  const std::vector<Device> devices = cuda_test::devices();
  if (devices.size() < 2) {
    MESSAGE("skipped: there is one device");
    return;
  }
  std::vector<std::string> said(devices.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < devices.size(); ++i)
    threads.emplace_back([&, i] { said[i] = run_on(devices[i], 30011, i, 20); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& difference : said) CHECK(difference == "");
  CHECK(run_on(devices.back(), 777, 1, 3) == "");
  CHECK(run_on(devices.front(), 777, 1, 3) == "");
}

TEST_CASE("shards on several devices") {
  const std::vector<Device> devices = cuda_test::devices();
  if (devices.size() < 2) {
    MESSAGE("skipped: there is one device");
    return;
  }
  cuda_test::Batch batch = bilogp::test::mixed_batch({.storage = Storage::bfloat16, .columns = 20000, .seed = 3});
  cuda_test::TurnsOverDevices calls(devices);
  batch.calls = &calls;
  CHECK(batch.check_shards(cuda_test::Runtime::get("cuda"), {5000, 9999, 10001}) == "");
}

TEST_SUITE_END();
