// How near forward and backward come to what the machine could do: each is timed in turn with a plain read, a copy
// around the caches and loops of fused multiply-adds over the same bytes.
//
//   bench_cpu [--megabytes N] [--repeat 9] [--threads N] [--targets ...] [--vocab-sizes ...]
//
//   medians of rounds: read GB/s; /read forward's share of the read of the same round
//   /issue      forward's share of a loop with as many fused multiply-adds per 64 bytes as the contract makes vector
//               operations of AVX-512 (9 for a leaf, 1 for unpacking 16 bits, 2 for the tree: 24 in 16-bit types, 12
//               in float32); /fma the same with its fused multiply-adds only (14 and 7)
//   masked      time of the forward with a quarter of the columns -inf, over the time without
//   bwd/copy    backward's share of the copy, reads and writes counted in both
#include <cstdio>
#include <exception>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "bench/cpu/ceilings.hpp"
#include "bench/cpu/logits.hpp"
#include "bench/median.hpp"
#include "bilogp/bilogp.hpp"

namespace {

using bilogp::DType;
using bilogp::TensorView;
using bilogp::bench::fill;
using bilogp::bench::median;
using Clock = std::chrono::steady_clock;

struct Settings {
  std::size_t megabytes = bilogp::bench::bytes_beyond_caches() >> 20;
  int repeat = 9;
  int threads = 0;

  // The host's own level has a long name.
  static std::string short_name(std::string_view target) {
    const std::size_t plus = target.find('+');
    return plus == std::string_view::npos ? std::string(target) : std::string(target.substr(0, plus)) + "+...";
  }
};

template<class Body> double seconds(Body body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Shares are taken round by round, since the machine's speed changes between rounds.
double median_ratio(const std::vector<double>& over, const std::vector<double>& under) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < over.size(); ++i) ratios.push_back(over[i] / under[i]);
  return median(ratios);
}

struct Times {
  std::vector<double> read, copy, operations, multiplications, forward, masked, backward;

  template<class Body> static void add(int round, std::vector<double>& times, const Body& body) {
    const double took = seconds(body);
    if (round >= 0) times.push_back(took);
  }
};

void row(const std::string& target, DType dtype, std::int64_t vocab, const Settings& settings, char* logits,
         char* masked, char* grad) {
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

  Times times;
  const int all_operations = dtype == DType::float32 ? 12 : 24;
  const int multiplications = dtype == DType::float32 ? 7 : 14;
  for (int i = -1; i < settings.repeat; ++i) { // the first round compiles and warms up
    times.add(i, times.read, [&] { bilogp::bench::read_all(logits, bytes, threads); });
    times.add(i, times.forward, [&] { runtime.logp(forward); });
    times.add(i, times.operations, [&] { bilogp::bench::multiply_all(logits, bytes, all_operations, threads); });
    times.add(i, times.multiplications, [&] { bilogp::bench::multiply_all(logits, bytes, multiplications, threads); });
    times.add(i, times.backward, [&] { runtime.logp_backward(backward); });
    times.add(i, times.copy, [&] { bilogp::bench::copy_all(logits, grad, bytes >> 20 << 20, threads); });
    forward.logits.data = masked;
    times.add(i, times.masked, [&] { runtime.logp(forward); });
    forward.logits.data = logits;
  }
  const double gb = static_cast<double>(bytes) * 1e-9;
  fmt::print("{:<24} {:<9} {:>7} {:>3} {:>8.1f} {:>7.2f} {:>7.2f} {:>7.2f} {:>7.2f} {:>8.2f}\n",
             settings.short_name(runtime.target()), to_string(dtype), vocab, threads, gb / median(times.read),
             median_ratio(times.read, times.forward), median_ratio(times.operations, times.forward),
             median_ratio(times.multiplications, times.forward), median_ratio(times.masked, times.forward),
             median_ratio(times.copy, times.backward));
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
  CLI::App app("Forward and backward against what the machine could do with the same bytes");
  app.add_option("--megabytes", settings.megabytes, "logits per measurement");
  app.add_option("--repeat", settings.repeat, "rounds, of which the median counts");
  app.add_option("--threads", settings.threads, "threads; 0: all");
  app.add_option("--targets", targets, "targets to measure");
  app.add_option("--vocab-sizes", vocabs, "vocabulary sizes");
  CLI11_PARSE(app, argc, argv);
  const std::size_t bytes = settings.megabytes << 20;
  char* logits = map(bytes);
  char* masked = map(bytes);
  char* grad = map(bytes);
  std::memset(grad, 1, bytes);
  fmt::print("{:<24} {:<9} {:>7} {:>3} {:>8} {:>7} {:>7} {:>7} {:>7} {:>8}\n", "target", "dtype", "vocab", "thr",
             "read GB/s", "/read", "/issue", "/fma", "masked", "bwd/copy");
  for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32}) {
    fill(logits, bytes, dtype, false);
    fill(masked, bytes, dtype, true);
    for (const std::string& target : targets)
      for (const std::int64_t vocab : vocabs) row(target, dtype, vocab, settings, logits, masked, grad);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_cpu: %s\n", error.what());
  return 1;
}
