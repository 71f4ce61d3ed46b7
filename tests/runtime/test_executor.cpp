// Calls on threads of the caller's own.
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "bilogp/bilogp.hpp"

using namespace bilogp;

namespace {

// As many threads as asked for, started anew for every call.
class FreshThreads : public Executor {
public:
  explicit FreshThreads(int threads) : threads_(threads) {}
  [[nodiscard]] int concurrency() const override { return threads_; }
  void run(std::int64_t count, Task task, void* context) override {
    ++runs;
    std::atomic<std::int64_t> next{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < threads_; ++t)
      threads.emplace_back([&] {
        for (std::int64_t i = next++; i < count; i = next++) task(context, i);
      });
    for (std::thread& thread : threads) thread.join();
  }
  int runs = 0;

private:
  int threads_;
};

// On the calling thread, with something done before every task.
template<class Before> class Inline : public Executor {
public:
  explicit Inline(Before before) : before_(std::move(before)) {}
  [[nodiscard]] int concurrency() const override { return 3; }
  void run(std::int64_t count, Task task, void* context) override {
    for (std::int64_t i = 0; i < count; ++i)
      if (before_(i)) task(context, i);
  }

private:
  Before before_;
};

// Forward, shards and gradient of some rows, and all they give.
struct Rows {
  std::int64_t rows, columns;
  std::vector<float> logits, logp, lse, gradient, upstream;
  std::vector<std::int32_t> state;
  std::vector<std::int64_t> ids;

  Rows(std::int64_t r, std::int64_t c) : rows(r), columns(c) {
    const auto n = static_cast<std::size_t>(r);
    logits.resize(n * static_cast<std::size_t>(c));
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i * 2654435761U % 4093) / 200 - 10;
    logp.resize(n);
    lse.resize(n);
    upstream.assign(n, 0.25F);
    gradient.resize(logits.size());
    state.resize(2 * n);
    for (std::int64_t i = 0; i < r; ++i) ids.push_back(i * 37 % c);
  }

  void score(const LogpOptions& options) {
    Runtime& runtime = Runtime::get("cpu");
    LogpArgs forward;
    forward.logits = TensorView::contiguous(logits.data(), DType::float32, {rows, columns});
    forward.target_ids = TensorView::contiguous(ids.data(), DType::int64, {rows});
    forward.logp = TensorView::contiguous(logp.data(), DType::float32, {rows});
    forward.lse = TensorView::contiguous(lse.data(), DType::float32, {rows});
    forward.row_state = TensorView::contiguous(state.data(), DType::int32, {rows, 2});
    forward.options = options;
    runtime.logp(forward);
    LogpBackwardArgs backward;
    backward.logits = forward.logits;
    backward.target_ids = forward.target_ids;
    backward.row_state = forward.row_state;
    backward.grad_logp = TensorView::contiguous(upstream.data(), DType::float32, {rows});
    backward.grad_logits = TensorView::contiguous(gradient.data(), DType::float32, {rows, columns});
    backward.options = options;
    runtime.logp_backward(backward);
  }

  [[nodiscard]] bool same_as(const Rows& other) const {
    const auto same = [](const auto& a, const auto& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
    };
    return same(logp, other.logp) && same(lse, other.lse) && same(state, other.state) && same(gradient, other.gradient);
  }
};

LogpOptions on(Executor& executor) {
  LogpOptions options;
  options.executor = &executor;
  return options;
}

Rows alone(std::int64_t rows, std::int64_t columns) {
  Rows result(rows, columns);
  LogpOptions options;
  options.threads = 1;
  result.score(options);
  return result;
}

} // namespace

TEST_SUITE_BEGIN("executor");

TEST_CASE("an executor gives the bits of one thread, for many rows and for few") {
  for (const auto& [rows, columns] : {std::pair{300L, 2000L}, {1L, 200000L}, {2L, 90001L}}) {
    const Rows expected = alone(rows, columns);
    for (const int threads : {1, 2, 3, 8}) {
      FreshThreads executor(threads);
      Rows result(rows, columns);
      result.score(on(executor));
      CHECK(result.same_as(expected));
      CHECK((executor.runs > 0) == (threads > 1));
    }
  }
}

TEST_CASE("a small call does not ask the executor for threads") {
  FreshThreads executor(4);
  Rows result(3, 100);
  result.score(on(executor));
  CHECK(executor.runs == 0);
  CHECK(result.same_as(alone(3, 100)));
}

TEST_CASE("an executor wins over the number of threads") {
  FreshThreads executor(2);
  Rows result(300, 2000);
  LogpOptions options = on(executor);
  options.threads = 1;
  result.score(options);
  CHECK(executor.runs == 2);
}

TEST_CASE("what an executor throws reaches the caller, and the next call is as ever") {
  struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  for (const auto& [rows, columns] : {std::pair{300L, 2000L}, {1L, 200000L}}) {
    Inline executor([](std::int64_t index) -> bool {
      if (index == 2) throw Refused("the pool is closed");
      return true;
    });
    Rows result(rows, columns);
    CHECK_THROWS_AS(result.score(on(executor)), Refused);
    FreshThreads other(2);
    result.score(on(other));
    CHECK(result.same_as(alone(rows, columns)));
  }
}

TEST_CASE("an executor that leaves tasks out is found out") {
  Inline executor([](std::int64_t index) { return index != 1; });
  Rows result(300, 2000);
  try {
    result.score(on(executor));
    FAIL("expected an error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::invalid_argument);
    CHECK(std::string(error.what()) == "the executor returned after 11 of 12 tasks; it must run each one once");
  }
}

TEST_CASE("a task that is run twice does not stand for one that is left out, nor one that there is not") {
  class Confused : public Executor {
  public:
    [[nodiscard]] int concurrency() const override { return 2; }
    void run(std::int64_t count, Task task, void* context) override {
      for (std::int64_t i = 1; i < count; ++i) task(context, i);
      task(context, 1);
      task(context, -1);
      task(context, count);
    }
  } executor;
  Rows result(64, 20000);
  CHECK_THROWS_WITH_AS(result.score(on(executor)), doctest::Contains("it must run each one once"), Error);
}

TEST_CASE("a concurrency that is none is refused before anything is written") {
  for (const int threads : {0, -1, 4097}) {
    FreshThreads executor(threads);
    Rows result(300, 2000);
    result.logp.assign(300, 7);
    try {
      result.score(on(executor));
      FAIL("expected an error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::invalid_argument);
      CHECK(std::string(error.what()) ==
            "the executor's concurrency is " + std::to_string(threads) + "; expected 1 to 4096");
    }
    CHECK(result.logp == std::vector<float>(300, 7));
  }
}

TEST_CASE("another call in between, on the calling thread") {
  const Rows expected = alone(1, 200000);
  const Rows other_expected = alone(2, 130000);
  Inline executor([&](std::int64_t) {
    FreshThreads threads(2);
    Rows other(2, 130000);
    other.score(on(threads));
    CHECK(other.same_as(other_expected));
    return true;
  });
  Rows result(1, 200000);
  result.score(on(executor));
  CHECK(result.same_as(expected));
}

TEST_SUITE_END();
