// Logits beyond 2^33 elements: offsets are 64 bits wide everywhere. The memory is reserved, not used: rows that no
// target counts in are not read.
#include <algorithm>
#include <cstring>
#include <random>
#include <stdexcept>

#include <sys/mman.h>

#include <doctest/doctest.h>

#include "bilogp/bilogp.hpp"

using namespace bilogp;

namespace {

constexpr std::int64_t beyond = std::int64_t{1} << 33;
constexpr std::int64_t columns = 151936;
constexpr std::int64_t live_rows = 3;

class Pages {
public:
  explicit Pages(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    start_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start_ == MAP_FAILED) throw std::runtime_error("no address space for a huge tensor");
  }
  ~Pages() { ::munmap(start_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] std::uint16_t* element(std::int64_t index) const { return static_cast<std::uint16_t*>(start_) + index; }

private:
  std::size_t bytes_;
  void* start_;
};

std::vector<std::uint16_t> some_rows() {
  std::mt19937 random(5);
  std::vector<std::uint16_t> logits(static_cast<std::size_t>(live_rows * columns));
  for (std::uint16_t& x : logits) x = static_cast<std::uint16_t>((random() & 0x8000U) | (0x3c00U + random() % 0x600U));
  return logits;
}

// What one call of every operator gives for the live rows.
struct Results {
  std::vector<float> logp, with_gradient, target_logit;
  std::vector<std::int32_t> state, nodes;
  std::vector<std::uint16_t> gradient, fused_gradient;
  friend bool operator==(const Results&, const Results&) = default;
};

// Rows `stride` elements apart, and gradients as far apart.
Results results_of(std::uint16_t* logits, std::uint16_t* gradients, std::int64_t stride) {
  Runtime& runtime = Runtime::get("cpu");
  const auto n = static_cast<std::size_t>(live_rows);
  const std::vector<std::int64_t> ids = {0, 77777, columns - 1};
  std::vector<float> upstream(n, 0.5F);
  Results r{std::vector<float>(n),
            std::vector<float>(n),
            std::vector<float>(n),
            std::vector<std::int32_t>(2 * n),
            {},
            {},
            {}};
  const TensorView x = TensorView::strided(logits, DType::bfloat16, {live_rows, columns}, {stride, 1});
  const TensorView targets = TensorView::contiguous(ids.data(), DType::int64, {live_rows});
  const TensorView states = TensorView::contiguous(r.state.data(), DType::int32, {live_rows, 2});
  const TensorView g = TensorView::contiguous(upstream.data(), DType::float32, {live_rows});
  const TensorView out = TensorView::strided(gradients, DType::bfloat16, {live_rows, columns}, {stride, 1});
  const auto collect = [&] {
    std::vector<std::uint16_t> all;
    for (std::int64_t row = 0; row < live_rows; ++row)
      all.insert(all.end(), gradients + row * stride, gradients + row * stride + columns);
    return all;
  };
  runtime.logp({.logits = x,
                .target_ids = targets,
                .logp = TensorView::contiguous(r.logp.data(), DType::float32, {live_rows}),
                .row_state = states});
  runtime.logp_backward({.logits = x, .target_ids = targets, .row_state = states, .grad_logp = g, .grad_logits = out});
  r.gradient = collect();
  runtime.logp_with_gradient({.logits = x,
                              .target_ids = targets,
                              .grad_logp = g,
                              .logp = TensorView::contiguous(r.with_gradient.data(), DType::float32, {live_rows}),
                              .grad_logits = out});
  r.fused_gradient = collect();
  const std::int64_t count = node_count(0, columns, columns);
  r.nodes.resize(2 * n * static_cast<std::size_t>(count));
  LogpPartialArgs partial;
  partial.logits = x;
  partial.target_ids = targets;
  partial.nodes = TensorView::contiguous(r.nodes.data(), DType::int32, {live_rows, count, 2});
  partial.target_logit = TensorView::contiguous(r.target_logit.data(), DType::float32, {live_rows});
  partial.shard_end = partial.full_vocab = columns;
  runtime.logp_partial(partial);
  return r;
}

} // namespace

TEST_SUITE_BEGIN("huge");

TEST_CASE("more than 2^33 logits in one call, of which the last rows count") {
  const std::int64_t rows = beyond / columns + 1 + live_rows;
  const std::int64_t dead = rows - live_rows;
  const Pages pages(rows * columns * 2);
  std::vector<std::uint16_t> live = some_rows();
  std::memcpy(pages.element(dead * columns), live.data(), live.size() * 2);
  std::vector<std::uint16_t> gradients(live.size());
  const Results expected = results_of(live.data(), gradients.data(), columns);

  std::vector<std::int32_t> ids(static_cast<std::size_t>(rows), -100);
  std::copy_n(std::initializer_list<std::int32_t>{0, 77777, columns - 1}.begin(), live_rows, ids.end() - live_rows);
  std::vector<float> logp(ids.size(), 7);
  LogpArgs args;
  args.logits = TensorView::contiguous(pages.element(0), DType::bfloat16, {rows, columns});
  args.target_ids = TensorView::contiguous(ids.data(), DType::int32, {rows});
  args.logp = TensorView::contiguous(logp.data(), DType::float32, {rows});
  for (const int threads : {1, 2}) {
    args.options.threads = threads;
    Runtime::get("cpu").logp(args);
    CHECK(std::equal(expected.logp.begin(), expected.logp.end(), logp.end() - live_rows));
    CHECK(std::all_of(logp.begin(), logp.end() - live_rows, [](float value) { return value == 0; }));
    logp.assign(logp.size(), 7);
  }
}

TEST_CASE("rows more than 2^32 elements apart, in every operator") {
  std::vector<std::uint16_t> live = some_rows();
  std::vector<std::uint16_t> gradients(live.size());
  const Results expected = results_of(live.data(), gradients.data(), columns);
  const std::int64_t stride = (std::int64_t{1} << 32) + 5;
  const Pages far(((live_rows - 1) * stride + columns) * 2);
  const Pages far_gradients(((live_rows - 1) * stride + columns) * 2);
  for (std::int64_t row = 0; row < live_rows; ++row)
    std::memcpy(far.element(row * stride), live.data() + row * columns, static_cast<std::size_t>(columns) * 2);
  CHECK(results_of(far.element(0), far_gradients.element(0), stride) == expected);
}

TEST_SUITE_END();
