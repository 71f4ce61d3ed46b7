// How near forward and backward come to the speed of memory: each is timed in turn with a plain read of the same
// bytes, and the medians are printed as a share of that read.
//
//   bench_cpu [--megabytes 600] [--repeat 9] [--threads N]
#include <cstdio>
#include <exception>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "bench/cpu/ceilings.hpp"
#include "bilogp/bilogp.hpp"

namespace {

using bilogp::DType;
using bilogp::TensorView;
using Clock = std::chrono::steady_clock;

struct Settings {
  std::size_t megabytes = 600;
  int repeat = 9;
  int threads = 0;
};

template<class Body> double seconds(Body body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

// Logits of a normal distribution, standard deviation 5, repeated from a block that no cache level predicts.
void fill(char* memory, std::size_t bytes, DType dtype) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal(0.0F, 5.0F);
  const std::size_t size = static_cast<std::size_t>(bilogp::size_of(dtype));
  std::vector<char> block(std::size_t{1} << 22);
  for (std::size_t at = 0; at < block.size(); at += size) {
    const float value = normal(random);
    auto bits = std::bit_cast<std::uint32_t>(value);
    if (dtype == DType::bfloat16) bits >>= 16;
    if (dtype == DType::float16) { // a rough conversion will do: the values only have to look like logits
      const std::uint32_t exponent = (bits >> 23) & 0xff;
      bits = exponent < 113 ? 0 : ((bits >> 16) & 0x8000U) | ((exponent - 112) << 10) | ((bits >> 13) & 0x3ffU);
    }
    std::memcpy(block.data() + at, &bits, size);
  }
  for (std::size_t at = 0; at < bytes; at += block.size())
    std::memcpy(memory + at, block.data(), std::min(block.size(), bytes - at));
}

void row(const std::string& target, DType dtype, std::int64_t vocab, const Settings& settings, char* logits,
         char* grad) {
  auto& runtime = bilogp::Runtime::get(target);
  if (!runtime.runnable()) return;
  const auto total = static_cast<std::int64_t>(settings.megabytes << 20);
  const std::int64_t rows = total / (vocab * bilogp::size_of(dtype));
  const auto bytes = static_cast<std::size_t>(rows * vocab * bilogp::size_of(dtype));
  const int threads = settings.threads > 0 ? settings.threads : bilogp::Runtime::num_threads();
  std::vector<std::int64_t> ids(static_cast<std::size_t>(rows), 17);
  std::vector<float> logp(ids.size());
  std::vector<float> upstream(ids.size(), 1.0F);
  std::vector<std::int32_t> state(2 * ids.size());
  const TensorView x = TensorView::contiguous(logits, dtype, {rows, vocab});
  const TensorView targets = TensorView::contiguous(ids.data(), DType::int64, {rows});
  const TensorView states = TensorView::contiguous(state.data(), DType::int32, {rows, 2});
  bilogp::LogpArgs forward{x,  targets, TensorView::contiguous(logp.data(), DType::float32, {rows}), {}, states,
                           {}, nullptr};
  bilogp::LogpBackwardArgs backward;
  backward.logits = x;
  backward.target_ids = targets;
  backward.row_state = states;
  backward.grad_logp = TensorView::contiguous(upstream.data(), DType::float32, {rows});
  backward.grad_logits = TensorView::contiguous(grad, dtype, {rows, vocab});
  forward.options.threads = backward.options.threads = threads;

  std::vector<double> read;
  std::vector<double> f;
  std::vector<double> b;
  for (int i = -1; i < settings.repeat; ++i) { // the first round compiles and warms up
    const double r = seconds([&] { bilogp::bench::read_all(logits, bytes, threads); });
    const double tf = seconds([&] { runtime.logp(forward); });
    const double tb = seconds([&] { runtime.logp_backward(backward); });
    if (i < 0) continue;
    read.push_back(r);
    f.push_back(tf);
    b.push_back(tb);
  }
  const double gb = static_cast<double>(bytes) * 1e-9;
  fmt::print("{:<40} {:<9} {:>7} {:>3} {:>8.1f} {:>8.1f} {:>8.2f} {:>9.1f}\n", runtime.target(), to_string(dtype),
             vocab, threads, gb / median(read), gb / median(f), median(read) / median(f), 2 * gb / median(b));
}

char* map(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<char*>(memory);
}

} // namespace

int main(int argc, char** argv) try {
  Settings settings;
  std::vector<std::string> targets = {"cpu", "cpu:x86-64-v3"};
  std::vector<std::int64_t> vocabs = {32768, 128256, 151936};
  CLI::App app("Forward and backward against a plain read of the same bytes");
  app.add_option("--megabytes", settings.megabytes, "logits per measurement");
  app.add_option("--repeat", settings.repeat, "rounds, of which the median counts");
  app.add_option("--threads", settings.threads, "threads; 0: all");
  app.add_option("--targets", targets, "targets to measure");
  app.add_option("--vocab-sizes", vocabs, "vocabulary sizes");
  CLI11_PARSE(app, argc, argv);
  const std::size_t bytes = settings.megabytes << 20;
  char* logits = map(bytes);
  char* grad = map(bytes);
  std::memset(grad, 1, bytes);
  fmt::print("{:<40} {:<9} {:>7} {:>3} {:>8} {:>8} {:>8} {:>9}\n", "target", "dtype", "vocab", "thr", "read GB/s",
             "fwd GB/s", "fwd/read", "bwd GB/s");
  for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32}) {
    fill(logits, bytes, dtype);
    for (const std::string& target : targets)
      for (const std::int64_t vocab : vocabs) row(target, dtype, vocab, settings, logits, grad);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_cpu: %s\n", error.what());
  return 1;
}
