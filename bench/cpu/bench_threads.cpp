// What a second thread brings to small calls, and where it does not: rows x columns, each call on logits that no cache
// holds, with one thread and with all. The thresholds of launch.hpp and split_rows.hpp come from here.
//
//   bench_threads [--repeat 301] [--pause MICROSECONDS between calls] [--threads N] [--megabytes 256]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "bench/median.hpp"
#include "bilogp/bilogp.hpp"

namespace {

using bilogp::DType;
using bilogp::TensorView;
using bilogp::bench::median;
using Clock = std::chrono::steady_clock;

void wait(double microseconds) { // busy, as a caller between two calls is
  const auto end = Clock::now() + std::chrono::duration<double, std::micro>(microseconds);
  while (Clock::now() < end) {
  }
}

struct Settings {
  int repeat = 301;
  double pause = 10;
  int threads = 0;
  std::size_t megabytes = 256; // of logits, gone through in turn; 0: the same ones for all calls
};

// Microseconds of the forward of `rows` rows, first all calls alone, then all with all threads (in turn, each kind
// would stretch the other's pauses).
void measure(DType dtype, std::int64_t rows, std::int64_t columns, const Settings& settings) {
  const auto size = static_cast<std::size_t>(rows * columns * bilogp::size_of(dtype));
  const std::size_t copies = std::max<std::size_t>(1, (settings.megabytes << 20) / size);
  std::vector<char> memory(copies * size);
  std::mt19937_64 random(3);
  for (std::size_t i = 1; i < size; i += 2) memory[i] = static_cast<char>(0x3e + random() % 3); // 0.1 to 30
  for (std::size_t copy = 1; copy < copies; ++copy) std::copy_n(memory.data(), size, memory.data() + copy * size);
  const std::vector<std::int64_t> ids(static_cast<std::size_t>(rows), 1);
  std::vector<float> logp(ids.size());
  bilogp::LogpArgs args;
  args.target_ids = TensorView::contiguous(ids.data(), DType::int64, {rows});
  args.logp = TensorView::contiguous(logp.data(), DType::float32, {rows});
  auto& runtime = bilogp::Runtime::get("cpu");
  const int all = settings.threads > 0 ? settings.threads : bilogp::Runtime::num_threads();
  std::vector<double> times[2];
  std::size_t next = 0;
  for (int which : {0, 1}) {
    args.options.threads = which == 0 ? 1 : all;
    for (int i = -20; i < settings.repeat; ++i) {
      char* logits = memory.data() + next++ % copies * size;
      args.logits = TensorView::contiguous(logits, dtype, {rows, columns});
      wait(settings.pause);
      const auto start = Clock::now();
      runtime.logp(args);
      const double took = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
      if (i >= 0) times[which].push_back(took);
    }
  }
  const double one = median(times[0]);
  const double many = median(times[1]);
  std::ranges::sort(times[1]);
  fmt::print("{:<9} {:>5} x {:<7} {:>8.0f} KB {:>9.2f} us {:>9.2f} us {:>6.2f} x  (90th percentile {:.2f} us)\n",
             to_string(dtype), rows, columns, static_cast<double>(size) / 1024, one, many, one / many,
             times[1][times[1].size() * 9 / 10]);
}

} // namespace

int main(int argc, char** argv) try {
  Settings settings;
  CLI::App app("Small calls with one thread and with all");
  app.add_option("--repeat", settings.repeat, "calls, of which the median counts");
  app.add_option("--pause", settings.pause, "microseconds between two calls");
  app.add_option("--threads", settings.threads, "threads; 0: all");
  app.add_option("--megabytes", settings.megabytes, "logits, so many that no cache holds them; 0: always the same");
  CLI11_PARSE(app, argc, argv);
  fmt::print("calls {} us apart: one thread, {} threads, gain\n", settings.pause,
             settings.threads > 0 ? settings.threads : bilogp::Runtime::num_threads());
  for (const DType dtype : {DType::bfloat16, DType::float32}) {
    for (const std::int64_t columns : {8192, 16384, 32768, 65536, 128256, 262144}) measure(dtype, 1, columns, settings);
    for (const std::int64_t rows : {2, 4, 8, 16, 64}) measure(dtype, rows, 4096, settings);
    for (const std::int64_t rows : {2, 3, 4, 8}) measure(dtype, rows, 32768, settings);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_threads: %s\n", error.what());
  return 1;
}
