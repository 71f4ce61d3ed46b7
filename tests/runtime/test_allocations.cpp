// A call whose kernel is loaded allocates nothing, and costs little beyond the kernel itself.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <doctest/doctest.h>

#include "bilogp/bilogp.hpp"

namespace {
std::atomic<std::int64_t> allocations{0};
}

// operator new ends in these as well.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the library's own names are reserved ones
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  ++allocations;
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  ++allocations;
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

namespace {

using bilogp::DType;
using bilogp::TensorView;

struct Rows {
  Rows(std::int64_t rows_wanted, std::int64_t vocab_wanted) : rows(rows_wanted), vocab(vocab_wanted) {
    const auto count = static_cast<std::size_t>(rows);
    logits.assign(count * static_cast<std::size_t>(vocab), 0.25F);
    grad.resize(logits.size());
    ids.assign(3 * count, 1);
    logp.resize(3 * count);
    upstream.assign(count, 1.0F);
    state.resize(2 * count);
  }
  std::int64_t rows, vocab;
  std::vector<float> logits, grad, logp, upstream;
  std::vector<std::int64_t> ids;
  std::vector<std::int32_t> state;

  bilogp::LogpArgs forward(std::int64_t k, int threads) {
    bilogp::LogpArgs args;
    args.logits = TensorView::contiguous(logits.data(), DType::float32, {rows, vocab});
    args.target_ids = TensorView::contiguous(ids.data(), DType::int64, {rows, k});
    args.logp = TensorView::contiguous(logp.data(), DType::float32, {rows, k});
    args.row_state = TensorView::contiguous(state.data(), DType::int32, {rows, 2});
    args.options.threads = threads;
    return args;
  }
  bilogp::LogpBackwardArgs backward(int threads) {
    bilogp::LogpBackwardArgs args;
    args.logits = TensorView::contiguous(logits.data(), DType::float32, {rows, vocab});
    args.target_ids = TensorView::contiguous(ids.data(), DType::int64, {rows});
    args.row_state = TensorView::contiguous(state.data(), DType::int32, {rows, 2});
    args.grad_logp = TensorView::contiguous(upstream.data(), DType::float32, {rows});
    args.grad_logits = TensorView::contiguous(grad.data(), DType::float32, {rows, vocab});
    args.options.threads = threads;
    return args;
  }
};

bilogp::LogpGradientArgs with_gradient(Rows& rows) {
  const bilogp::LogpArgs forward = rows.forward(1, 1);
  const bilogp::LogpBackwardArgs backward = rows.backward(1);
  bilogp::LogpGradientArgs args;
  args.logits = forward.logits;
  args.target_ids = backward.target_ids;
  args.grad_logp = backward.grad_logp;
  args.logp = TensorView::contiguous(rows.logp.data(), DType::float32, {rows.rows});
  args.grad_logits = backward.grad_logits;
  args.options.threads = 1;
  return args;
}

template<class Call> std::int64_t allocations_of(int repeats, const Call& call) {
  const std::int64_t before = allocations.load();
  for (int i = 0; i < repeats; ++i) call();
  return allocations.load() - before;
}

} // namespace

TEST_CASE("the counter counts") {
  CHECK(allocations_of(5, [] { delete new std::vector<int>(100); }) >= 5);
}

TEST_CASE("a warm call on one thread allocates nothing") {
  bilogp::Runtime& runtime = bilogp::Runtime::get("cpu");
  for (const std::int64_t vocab : {100, 5000}) {
    Rows rows(4, vocab);
    for (const std::int64_t k : {1, 3}) {
      const bilogp::LogpArgs args = rows.forward(k, 1);
      runtime.logp(args);
      CHECK(allocations_of(100, [&] { runtime.logp(args); }) == 0);
    }
    const bilogp::LogpBackwardArgs args = rows.backward(1);
    runtime.logp_backward(args);
    CHECK(allocations_of(100, [&] { runtime.logp_backward(args); }) == 0);
    const bilogp::LogpGradientArgs both = with_gradient(rows);
    runtime.logp_with_gradient(both);
    CHECK(allocations_of(100, [&] { runtime.logp_with_gradient(both); }) == 0);
  }
}

// The threads' tasks come from oneTBB's own pools, which grow while its workers arrive and then stay.
TEST_CASE("a warm call on several threads allocates next to nothing") {
  bilogp::Runtime& runtime = bilogp::Runtime::get("cpu");
  Rows rows(64, 20000);
  const bilogp::LogpArgs args = rows.forward(1, 2);
  for (int i = 0; i < 50; ++i) runtime.logp(args);
  const std::int64_t counted = allocations_of(100, [&] { runtime.logp(args); });
  MESSAGE("allocations in 100 calls on two threads: " << counted);
  CHECK(counted < 100);
}

TEST_CASE("a call of one tiny row takes microseconds at most") {
  bilogp::Runtime& runtime = bilogp::Runtime::get("cpu");
  Rows rows(1, 2);
  const bilogp::LogpArgs args = rows.forward(1, 1);
  runtime.logp(args);
  double best = 1;
  for (int round = 0; round < 20; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) runtime.logp(args);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 1000);
  }
  MESSAGE("one call of one row of two columns: " << best * 1e9 << " ns, kernel included");
  CHECK(best < 20e-6); // the benchmark has the figure; this catches a lock, a file or a compile on the way
}
