// A call whose kernel is loaded allocates nothing, and costs little beyond the kernel itself.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>

#include <doctest/doctest.h>

#include "bilogp/bilogp.hpp"

namespace {

std::atomic<std::int64_t> allocations{0};
std::array<std::atomic<void*>, 256> callers{}; // of the latest ones

std::atomic<std::size_t> refused_from{SIZE_MAX}; // bytes of an allocation

void count(void* caller) {
  callers[static_cast<std::size_t>(allocations++) % callers.size()] = caller;
}

} // namespace

// operator new ends in these as well.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the library's own names are reserved ones
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  count(__builtin_return_address(0));
  return size >= refused_from ? nullptr : __libc_malloc(size);
}
void* calloc(std::size_t number, std::size_t size) {
  count(__builtin_return_address(0));
  return __libc_calloc(number, size);
}
void* realloc(void* memory, std::size_t size) {
  count(__builtin_return_address(0));
  return __libc_realloc(memory, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  count(__builtin_return_address(0));
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

namespace {

using bilogp::DType;
using bilogp::Runtime;
using bilogp::TensorView;

// The arguments of every operator over the same rows; shards are two halves of the columns.
struct Rows {
  Rows(std::int64_t rows_wanted, std::int64_t vocab_wanted, int threads_wanted)
      : rows(rows_wanted), vocab(vocab_wanted), threads(threads_wanted) {
    const auto n = static_cast<std::size_t>(rows);
    logits.assign(n * static_cast<std::size_t>(vocab), 0.25F);
    grad.resize(logits.size());
    ids.assign(3 * n, 1);
    logp.resize(3 * n);
    target_logit.assign(n, 0.25F);
    upstream.assign(n, 1.0F);
    temperatures.assign(n, 0.5F);
    state.resize(2 * n);
    for (std::size_t s = 0; s < 2; ++s) {
      const std::int64_t begin = s == 0 ? 0 : vocab / 2;
      const std::int64_t end = s == 0 ? vocab / 2 : vocab;
      const std::int64_t count = bilogp::node_count(begin, end, vocab);
      nodes[s].resize(2 * n * static_cast<std::size_t>(count));
      shards[s] = {begin, end, TensorView::contiguous(nodes[s].data(), DType::int32, {rows, count, 2})};
    }
  }
  std::int64_t rows, vocab;
  int threads;
  std::vector<float> logits, grad, logp, target_logit, upstream, temperatures;
  std::vector<std::int64_t> ids;
  std::vector<std::int32_t> state;
  std::array<std::vector<std::int32_t>, 2> nodes;
  std::array<bilogp::ShardNodes, 2> shards;

  [[nodiscard]] TensorView per_row(std::vector<float>& values) const {
    return TensorView::contiguous(values.data(), DType::float32, {rows});
  }
  TensorView one_id() { return TensorView::contiguous(ids.data(), DType::int64, {rows}); }
  TensorView states() { return TensorView::contiguous(state.data(), DType::int32, {rows, 2}); }
  TensorView matrix(std::vector<float>& values) const {
    return TensorView::contiguous(values.data(), DType::float32, {rows, vocab});
  }

  bilogp::LogpArgs forward(std::int64_t k) {
    bilogp::LogpArgs args;
    args.logits = matrix(logits);
    args.target_ids = TensorView::contiguous(ids.data(), DType::int64, {rows, k});
    args.logp = TensorView::contiguous(logp.data(), DType::float32, {rows, k});
    args.row_state = states();
    args.options.threads = threads;
    return args;
  }
  bilogp::LogpBackwardArgs backward() {
    bilogp::LogpBackwardArgs args;
    args.logits = matrix(logits);
    args.target_ids = one_id();
    args.row_state = states();
    args.grad_logp = per_row(upstream);
    args.grad_logits = matrix(grad);
    args.options.threads = threads;
    return args;
  }
  bilogp::LogpGradientArgs with_gradient() {
    bilogp::LogpGradientArgs args;
    args.logits = matrix(logits);
    args.target_ids = one_id();
    args.grad_logp = per_row(upstream);
    args.logp = per_row(logp);
    args.grad_logits = matrix(grad);
    args.options.threads = threads;
    return args;
  }
  bilogp::LogpPartialArgs partial(std::size_t shard) {
    bilogp::LogpPartialArgs args;
    args.shard_begin = shards[shard].shard_begin;
    args.shard_end = shards[shard].shard_end;
    args.full_vocab = vocab;
    args.logits = matrix(logits);
    args.logits.data = logits.data() + args.shard_begin;
    args.logits.shape[1] = args.shard_end - args.shard_begin;
    args.target_ids = one_id();
    args.nodes = shards[shard].nodes;
    args.target_logit = per_row(target_logit);
    args.options.threads = threads;
    return args;
  }
  bilogp::LogpFinishArgs finish() {
    bilogp::LogpFinishArgs args;
    args.shards = shards;
    args.full_vocab = vocab;
    args.target_ids = one_id();
    args.target_logit = per_row(target_logit);
    args.logp = per_row(logp);
    args.row_state = states();
    args.options.threads = threads;
    return args;
  }
};

template<class Call> std::int64_t allocations_of(int repeats, const Call& call) {
  const std::int64_t before = allocations.load();
  for (int i = 0; i < repeats; ++i) call();
  return allocations.load() - before;
}

// Hands the calls of all operators to `check`, by name.
template<class Check> void for_each_call(Rows& rows, const Check& check) {
  Runtime& runtime = Runtime::get("cpu");
  for (const std::int64_t k : {1, 3}) {
    bilogp::LogpArgs args = rows.forward(k);
    check("logp", [&] { runtime.logp(args); });
    args.options.temperature_per_row = rows.per_row(rows.temperatures);
    check("logp, temperatures per row", [&] { runtime.logp(args); });
  }
  bilogp::LogpBackwardArgs backward = rows.backward();
  runtime.logp(rows.forward(1)); // its row states
  check("logp_backward", [&] { runtime.logp_backward(backward); });
  backward.options.temperature_per_row = rows.per_row(rows.temperatures);
  check("logp_backward, temperatures per row", [&] { runtime.logp_backward(backward); });
  bilogp::LogpGradientArgs both = rows.with_gradient();
  check("logp_with_gradient", [&] { runtime.logp_with_gradient(both); });
  both.row_state = rows.states();
  check("logp_with_gradient, row states", [&] { runtime.logp_with_gradient(both); });
  for (const std::size_t shard : {0U, 1U}) {
    const bilogp::LogpPartialArgs partial = rows.partial(shard);
    check("logp_partial", [&] { runtime.logp_partial(partial); });
  }
  const bilogp::LogpFinishArgs finish = rows.finish(); // of the nodes that the two have left
  check("logp_finish", [&] { runtime.logp_finish(finish); });
}

// The files of the code that made the latest `number` allocations, each once; without oneTBB's own.
std::string others_among(std::int64_t number) {
  std::set<std::string> others;
  const std::int64_t end = allocations.load();
  for (std::int64_t i = end - std::min(number, static_cast<std::int64_t>(callers.size())); i < end; ++i) {
    Dl_info info = {};
    const void* caller = callers[static_cast<std::size_t>(i) % callers.size()].load();
    const bool known = ::dladdr(caller, &info) != 0 && info.dli_fname != nullptr;
    const std::string file = known ? info.dli_fname : "code of no file";
    if (file.find("/libtbb") == std::string::npos) others.insert(file);
  }
  std::string all;
  for (const std::string& file : others) all += (all.empty() ? "" : ", ") + file;
  return all;
}

} // namespace

TEST_CASE("the counter counts, and knows who called") {
  const auto allocate = [] { delete new std::vector<int>(100); };
  CHECK(allocations_of(5, allocate) >= 5);
  const std::int64_t number = allocations_of(5, allocate);
  CHECK(others_among(number).find("libstdc++") != std::string::npos);
}

TEST_CASE("a warm call on one thread allocates nothing") {
  for (const std::int64_t vocab : {100, 5000}) {
    Rows rows(4, vocab, 1);
    for_each_call(rows, [&](const std::string& what, const auto& call) {
      CAPTURE(what);
      CAPTURE(vocab);
      call();
      CHECK(allocations_of(100, call) == 0);
    });
  }
}

// oneTBB keeps pools of tasks per worker, which grow until they have held the most that were ever alive at once: with
// the first calls, and now and then with a later one in which a worker comes at a new moment. Nothing else allocates.
TEST_CASE("a warm call on several threads allocates nothing, once oneTBB's pools have grown") {
  constexpr int rounds = 20;
  for (const std::int64_t row_count : {2, 64}) {
    Rows rows(row_count, 20000, 2);
    for_each_call(rows, [&](const std::string& what, const auto& call) {
      CAPTURE(what);
      CAPTURE(row_count);
      for (int i = 0; i < 20; ++i) call();
      std::int64_t counted = -1;
      for (int round = 0; round < rounds && counted != 0; ++round) {
        counted = allocations_of(50, call);
        CHECK(others_among(counted) == "");
      }
      CHECK(counted == 0);
    });
  }
}

TEST_CASE("memory that cannot be allocated for a call is an error, and the next call is as ever") {
  Rows rows(1, 200000, 2);
  const auto& runtime_calls = [&](const std::string& what, const auto& call) {
    CAPTURE(what);
    call(); // compiled and loaded
    const std::vector<float> expected = rows.logp;
    std::string sentence;
    std::thread fresh([&] { // without scratch of earlier calls
      refused_from = 1000;
      try {
        call();
      } catch (const bilogp::Error& error) {
        refused_from = SIZE_MAX;
        sentence = error.kind() == bilogp::ErrorKind::out_of_memory ? error.what() : "another kind";
      }
      refused_from = SIZE_MAX;
    });
    fresh.join();
    CHECK_MESSAGE(sentence.starts_with("there was no memory for "), sentence);
    call();
    CHECK(rows.logp == expected);
  };
  Runtime& runtime = Runtime::get("cpu");
  runtime_calls("logp", [&] { runtime.logp(rows.forward(1)); });
  runtime_calls("logp_with_gradient", [&] { runtime.logp_with_gradient(rows.with_gradient()); });
}
