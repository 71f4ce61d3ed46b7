// The table of loaded kernels: one maker per key, shared errors that a later call tries again, many keys.
#include <atomic>
#include <barrier>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <doctest/doctest.h>

#include "runtime/kernel_table.hpp"

using bilogp::KernelTable;
using bilogp::LoadedKernel;

namespace {

LoadedKernel kernel_of(std::uint64_t number) {
  LoadedKernel kernel;
  kernel.entry = reinterpret_cast<void*>(number);
  return kernel;
}

void on_threads(int count, const std::function<void()>& body) {
  std::barrier start(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] {
      start.arrive_and_wait();
      body();
    });
  for (std::thread& thread : threads) thread.join();
}

} // namespace

TEST_CASE("kernel table: 32 threads, one key, one make") {
  KernelTable table;
  std::atomic<int> makes{0};
  std::atomic<int> right{0};
  CHECK(table.find({7}) == nullptr);
  on_threads(32, [&] {
    const LoadedKernel& kernel = table.find_or_make({7}, [&] {
      ++makes;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return kernel_of(0x70);
    });
    if (kernel.entry == reinterpret_cast<void*>(std::uintptr_t{0x70}) && table.find({7}) == &kernel) ++right;
  });
  CHECK(makes == 1);
  CHECK(right == 32);
  CHECK(table.all().size() == 1);
}

TEST_CASE("kernel table: an error is shared by those who wait, and a later call tries again") {
  KernelTable table;
  std::atomic<int> makes{0};
  std::atomic<int> errors{0};
  on_threads(16, [&] {
    try {
      table.find_or_make({9}, [&]() -> LoadedKernel {
        ++makes;
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        throw std::runtime_error("no compiler");
      });
    } catch (const std::runtime_error& error) {
      if (std::string(error.what()) == "no compiler") ++errors;
    }
  });
  CHECK(errors == 16);
  CHECK(makes < 16); // those who came while it was made share its error
  CHECK(table.find({9}) == nullptr);
  CHECK(table.all().empty());
  CHECK(table.find_or_make({9}, [] { return kernel_of(0x90); }).entry == reinterpret_cast<void*>(std::uintptr_t{0x90}));
}

TEST_CASE("kernel table: entries stay where they are while it grows under readers") {
  KernelTable table;
  const LoadedKernel* first = &table.find_or_make({1}, [] { return kernel_of(1); });
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!stop)
      if (table.find({1}) != first) ++wrong;
  });
  for (std::uint64_t word = 2; word <= 1000; ++word) table.find_or_make({word << 20}, [&] { return kernel_of(word); });
  stop = true;
  reader.join();
  CHECK(wrong == 0);
  for (std::uint64_t word = 2; word <= 1000; ++word) {
    const LoadedKernel* kernel = table.find({word << 20});
    REQUIRE(kernel != nullptr);
    CHECK(kernel->entry == reinterpret_cast<void*>(word));
  }
  CHECK(table.find({std::uint64_t{1001} << 20}) == nullptr);
  CHECK(table.all().size() == 1000);
}

TEST_CASE("kernel table: makers of different keys do not wait for each other") {
  KernelTable table;
  std::barrier both(2); // passed only when both makers run at once
  std::thread other([&] {
    table.find_or_make({2}, [&] {
      both.arrive_and_wait();
      return kernel_of(2);
    });
  });
  table.find_or_make({1}, [&] {
    both.arrive_and_wait();
    return kernel_of(1);
  });
  other.join();
  CHECK(table.all().size() == 2);
}
