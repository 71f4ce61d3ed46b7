// Locks, forks and deaths.
#include <chrono>
#include <csignal>
#include <set>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache/key_lock.hpp"
#include "support.hpp"

using namespace store_test;
using namespace std::chrono_literals;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A pipe that children wait on until all are there.
class Barrier {
public:
  Barrier() {
    if (::pipe(ends_) != 0) throw std::runtime_error("cannot make a pipe");
  }
  ~Barrier() {
    ::close(ends_[0]);
    if (ends_[1] >= 0) ::close(ends_[1]);
  }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;
  void wait_in_child() {
    ::close(ends_[1]);
    char byte;
    while (::read(ends_[0], &byte, 1) > 0) {
    }
  }
  void release() {
    ::close(ends_[1]);
    ends_[1] = -1;
  }

private:
  int ends_[2];
};

// What the runtime does on a miss.
bool compile_once(Store& store, int number, const std::string& log) {
  if (has(store, number)) return true;
  const KeyLock lock = store.lock(key_of(number));
  if (!lock.held()) return false;
  if (has(store, number)) return true;
  append_line(log, std::to_string(number));
  std::this_thread::sleep_for(40ms);
  return keep(store, number) && has(store, number);
}

} // namespace

TEST_CASE("many processes, eight keys, a barrier: every key is compiled exactly once") {
  const ScratchDirectory scratch;
  const std::string log = scratch.path() + "/compiled";
  int processes = 2;
  SUBCASE("two") {
    processes = 2;
  }
  SUBCASE("sixteen") {
    processes = 16;
  }
  Barrier barrier;
  std::vector<pid_t> children;
  for (int child = 0; child < processes; ++child)
    children.push_back(start_child([&] {
      barrier.wait_in_child();
      Warnings warnings;
      Store store(scratch.location(), warnings.receiver());
      for (int number = 0; number < 8; ++number)
        if (!compile_once(store, number, log)) return false;
      return warnings.count() == 0;
    }));
  barrier.release();
  for (const pid_t child : children) CHECK(succeeded(child));
  CHECK(count_lines(log) == 8);
}

TEST_CASE("the lock excludes the threads of one process, per key") {
  const ScratchDirectory scratch;
  const std::string log = scratch.path() + "/compiled";
  Store store(scratch.location(), {});
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&] {
      if (!compile_once(store, 1, log)) ++failed;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
  CHECK(count_lines(log) == 1);
  KeyLock one = store.lock(key_of(1));
  const auto start = std::chrono::steady_clock::now();
  CHECK(store.lock(key_of(2)).held()); // another key does not wait
  CHECK(seconds_since(start) < 1.0);
  KeyLock moved = std::move(one);
  CHECK(moved.held());
  CHECK_FALSE(one.held()); // NOLINT(bugprone-use-after-move): the state that a move leaves is documented
  moved = KeyLock();
  CHECK(store.lock(key_of(1)).held());
}

TEST_CASE("different keys lock different bytes, none of them the store's own") {
  std::set<std::int64_t> offsets;
  for (int number = 0; number < 10'000; ++number) offsets.insert(lock_offset(key_of(number).hash()));
  CHECK(offsets.size() == 10'000);
  CHECK(*offsets.begin() >= 0);
  Hash128 highest;
  highest.fill(0xff);
  CHECK(lock_offset(highest) < store_lock_offset);
}

TEST_CASE("a wait is bounded") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path() + "/lock";
  const KeyLock held = lock_range(path, 5, 1s);
  REQUIRE(held.held());
  const auto start = std::chrono::steady_clock::now();
  CHECK_FALSE(lock_range(path, 5, 200ms).held());
  CHECK(seconds_since(start) >= 0.2);
  CHECK(seconds_since(start) < 2.0);
  CHECK(exists(path));
  CHECK_FALSE(lock_range(scratch.path() + "/nowhere/lock", 5, 10s).held()); // cannot be opened: at once
  CHECK_FALSE(lock_range("/dev/null/lock", 5, 10s).held());
}

TEST_CASE("a waiter takes over from a holder that is killed") {
  const ScratchDirectory scratch;
  Barrier never_released;
  const pid_t holder = start_child([&] {
    Store store(scratch.location(), {});
    const KeyLock lock = store.lock(key_of(1));
    append_line(scratch.path() + "/held", lock.held() ? "yes" : "no");
    never_released.wait_in_child();
    return true;
  });
  while (!exists(scratch.path() + "/held")) std::this_thread::sleep_for(2ms);
  Store store(scratch.location(), {});
  std::chrono::steady_clock::time_point killed;
  std::thread killer([&] {
    std::this_thread::sleep_for(300ms);
    killed = std::chrono::steady_clock::now();
    ::kill(holder, SIGKILL);
  });
  const KeyLock lock = store.lock(key_of(1));
  const auto taken = std::chrono::steady_clock::now();
  killer.join();
  CHECK(lock.held());
  CHECK(taken > killed);
  CHECK(std::chrono::duration<double>(taken - killed).count() < 1.0);
  CHECK_FALSE(succeeded(holder));
}

TEST_CASE("a fork does not carry a key lock on: not when the parent dies, not when the child ends") {
  const ScratchDirectory scratch;
  Barrier barrier;
  const pid_t holder = start_child([&] {
    Store store(scratch.location(), {});
    KeyLock lock = store.lock(key_of(1));
    if (!lock.held()) return false;
    // A grandchild that would outlive the holder, were its copy of the descriptor still open.
    const pid_t grandchild = start_child([&] {
      barrier.wait_in_child();
      return true;
    });
    append_line(scratch.path() + "/grandchild", std::to_string(grandchild));
    // One that ends with the inherited lock object: the parent's lock must stay.
    const bool ended = in_child([&lock] {
      lock = KeyLock();
      return true;
    });
    if (!ended || lock_range(scratch.file() + ".lock", lock_offset(key_of(1).hash()), 50ms).held()) return false;
    ::kill(::getpid(), SIGKILL);
    return false;
  });
  int status = 0;
  REQUIRE(::waitpid(holder, &status, 0) == holder);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(lock_range(scratch.file() + ".lock", lock_offset(key_of(1).hash()), 1s).held());
  barrier.release();
}

TEST_CASE("a child of a fork uses the parent's open store through a connection of its own") {
  const ScratchDirectory scratch;
  Warnings warnings;
  Store store(scratch.location(), warnings.receiver());
  REQUIRE(keep(store, 1));
  REQUIRE(has(store, 1));
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child)
    children.push_back(start_child([&, child] {
      for (int round = 0; round < 10; ++round)
        if (!has(store, 1) || !keep(store, 100 + 10 * child + round)) return false;
      return warnings.count() == 0;
    }));
  for (int round = 0; round < 10; ++round) CHECK(keep(store, 10 + round));
  for (const pid_t child : children) CHECK(succeeded(child));
  CHECK(store.list().size() == 51);
  CHECK(store.verify({}).bad.empty());
  CHECK(warnings.count() == 0);
}

TEST_CASE("forks while other threads use the store: no child hangs") {
  const ScratchDirectory scratch;
  Store store(scratch.location(), {});
  REQUIRE(keep(store, 0));
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread)
    threads.emplace_back([&, thread] {
      for (int round = 0; !stop; ++round) {
        keep(store, thread * 100 + round % 5);
        const KeyLock lock = store.lock(key_of(thread));
        has(store, 0);
        std::this_thread::sleep_for(1ms);
      }
    });
  int failed = 0;
  for (int round = 0; round < 25; ++round) failed += in_child([&] { return has(store, 0); }) ? 0 : 1;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
}

TEST_CASE("processes killed at any moment leave a store that is whole") {
  const ScratchDirectory scratch;
  for (int round = 0; round < 20; ++round) {
    std::vector<pid_t> children;
    for (int child = 0; child < 3; ++child)
      children.push_back(start_child([&, child] {
        Store store(scratch.location(), {});
        for (int number = 0;; ++number) keep(store, 1000 * child + number % 40, 30'000);
        return true;
      }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 7 * round % 60));
    for (const pid_t child : children) ::kill(child, SIGKILL);
    for (const pid_t child : children) CHECK_FALSE(succeeded(child));
    Warnings warnings;
    Store store(scratch.location(), warnings.receiver());
    CHECK(store.verify({}).bad.empty());
    CHECK(keep(store, 9999));
    CHECK(warnings.count() == 0);
  }
  CHECK(ask_sql(scratch.file(), "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check='ok'") == 1);
}
