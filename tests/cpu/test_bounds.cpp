// Kernels read and write nothing beside what they are given: logits and gradients end at memory that may not be
// touched, or begin behind such. A kernel that does touch it ends the test; sanitizers do not see into compiled
// kernels.
#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

#include <sys/mman.h>
#include <unistd.h>

#include "tests/cpu/checks.hpp"

using namespace bilogp;
using namespace bilogp::test;

namespace {

enum class Edge { front, back };

// A copy of a tensor of rows whose first, or last, byte lies at a page that may not be touched. Of the last row only
// `live` columns are there.
class Fenced {
public:
  Fenced(const TensorView& rows, std::int64_t live, Edge edge) : original_(rows) {
    const std::int64_t elements = (rows.shape[0] - 1) * rows.strides[0] + live;
    bytes_ = static_cast<std::size_t>(elements * size_of(rows.dtype));
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t inside = (bytes_ + page - 1) / page * page;
    mapped_ = inside + 2 * page;
    void* memory = ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    start_ = static_cast<char*>(memory);
    if (inside > 0 && ::mprotect(start_ + page, inside, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    data_ = start_ + page + (edge == Edge::back ? inside - bytes_ : 0);
    std::memcpy(data_, rows.data, bytes_);
  }
  ~Fenced() { ::munmap(start_, mapped_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  [[nodiscard]] TensorView view() const {
    TensorView moved = original_;
    moved.data = data_;
    return moved;
  }
  void copy_back() const { std::memcpy(original_.data, data_, bytes_); }

private:
  TensorView original_;
  std::size_t bytes_ = 0, mapped_ = 0;
  char* start_ = nullptr;
  char* data_ = nullptr;
};

// Columns of a shard's rows that count.
std::int64_t live_of(const TensorView& logits, const LogpOptions& options, std::int64_t begin) {
  const std::int64_t columns = logits.shape[1];
  return options.vocab_size < 0 ? columns : std::clamp<std::int64_t>(options.vocab_size - begin, 0, columns);
}

class FencedCalls : public Calls {
public:
  explicit FencedCalls(Edge edge) : edge_(edge) {}

  void logp(Runtime& runtime, const LogpArgs& args) override {
    const Fenced logits(args.logits, live_of(args.logits, args.options, 0), edge_);
    LogpArgs fenced = args;
    fenced.logits = logits.view();
    runtime.logp(fenced);
  }
  void logp_partial(Runtime& runtime, const LogpPartialArgs& args) override {
    const Fenced logits(args.logits, live_of(args.logits, args.options, args.shard_begin), edge_);
    LogpPartialArgs fenced = args;
    fenced.logits = logits.view();
    runtime.logp_partial(fenced);
  }
  void logp_backward(Runtime& runtime, const LogpBackwardArgs& args) override {
    write_gradient(args, args.shard_begin, [&](const LogpBackwardArgs& fenced) { runtime.logp_backward(fenced); });
  }
  void logp_with_gradient(Runtime& runtime, const LogpGradientArgs& args) override {
    write_gradient(args, 0, [&](const LogpGradientArgs& fenced) { runtime.logp_with_gradient(fenced); });
  }

private:
  template<class Args, class Call> void write_gradient(const Args& args, std::int64_t begin, const Call& call) {
    const Fenced gradient(args.grad_logits, args.grad_logits.shape[1], edge_);
    std::optional<Fenced> logits;
    if (!args.in_place) logits.emplace(args.logits, live_of(args.logits, args.options, begin), edge_);
    Args fenced = args;
    fenced.grad_logits = gradient.view();
    fenced.logits = args.in_place ? gradient.view() : logits->view();
    call(fenced);
    gradient.copy_back();
  }

  Edge edge_;
};

void check_fenced(const Mix& mix, Runtime& runtime) {
  Batch batch = mixed_batch(mix);
  std::mt19937_64 random(mix.seed);
  const auto cuts = random_cuts(random, mix.columns, 2);
  for (const Edge edge : {Edge::front, Edge::back}) {
    FencedCalls calls(edge);
    batch.calls = &calls;
    const std::string difference = check_everything(batch, runtime, cuts);
    CHECK_MESSAGE(difference.empty(), describe(mix) << ": " << difference);
  }
}

} // namespace

TEST_SUITE_BEGIN("bounds");

TEST_CASE("rows of every kind beside memory that may not be touched") {
  for (Runtime* runtime : levels())
    for (const Storage storage : all_storages)
      for (const std::int64_t columns : {1, 2, 15, 17, 31, 33, 63, 65, 255, 257, 511, 513, 770, 1025, 4097, 8225}) {
        if (is_slow(*runtime) && columns > 100) continue;
        const int rounds = columns < 100 ? 28 : columns < 1000 ? 10 : 4;
        for (int round = 0; round < rounds; ++round) // a row of any kind may be the last
          check_fenced({.storage = storage,
                        .columns = columns,
                        .rows = 1 + round % 2,
                        .seed = static_cast<std::uint64_t>(1000 * columns + round)},
                       *runtime);
      }
}

TEST_CASE("columns behind the vocabulary are not looked at") {
  for (Runtime* runtime : levels())
    for (const Storage storage : all_storages)
      for (const std::int64_t vocab_size : {1, 15, 16, 33, 64, 97, 511, 512, 600, 4095}) {
        if (is_slow(*runtime) && vocab_size > 100) continue;
        for (std::uint64_t round = 0; round < 4; ++round)
          check_fenced({.storage = storage,
                        .columns = vocab_size + 37,
                        .rows = 2,
                        .seed = static_cast<std::uint64_t>(vocab_size) + 50000 * round,
                        .vocab_size = vocab_size},
                       *runtime);
      }
}

TEST_SUITE_END();
