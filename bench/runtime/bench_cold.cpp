// The first call of a process, with an empty store (load clang, compile, map) and from the store (read, map); and what
// the time of a compile goes into, per level. Each figure is the median of fresh child processes.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/median.hpp"
#include "bilogp/bilogp.hpp"
#include "runtime/backends/cpu/compiler.hpp"
#include "runtime/backends/cpu/kernels.hpp"

namespace {

using bilogp::cpu::CompileTimes;

using bilogp::DType;
using bilogp::TensorView;
using bilogp::bench::median;

// Milliseconds of the first call in this process.
double first_call(DType dtype, std::int64_t vocab) {
  std::vector<float> logits(static_cast<std::size_t>(vocab), 0.0F);
  const std::int64_t id = 1;
  float logp = 0;
  bilogp::LogpArgs args;
  args.logits = TensorView::contiguous(logits.data(), dtype, {1, vocab});
  args.target_ids = TensorView::contiguous(&id, DType::int64, {1});
  args.logp = TensorView::contiguous(&logp, DType::float32, {1});
  args.options.threads = 1;
  const auto start = std::chrono::steady_clock::now();
  bilogp::Runtime::get("cpu").logp(args);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// What `body` returns in a process of its own: a plain struct of numbers.
template<class Body> auto in_child(Body body) {
  decltype(body()) result{};
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    result = body();
    const bool written = write(ends[1], &result, sizeof result) == sizeof result;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  const bool was_read = read(ends[0], &result, sizeof result) == sizeof result;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!was_read || status != 0) std::exit(1);
  return result;
}

constexpr int processes = 5;

void first_calls(const std::filesystem::path& store) {
  fmt::print("{:<10} {:>7} {:>14} {:>14}\n", "dtype", "vocab", "compiled, ms", "from store, ms");
  for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32}) {
    std::vector<double> compiled;
    std::vector<double> stored;
    for (int i = 0; i < processes; ++i) {
      std::filesystem::remove_all(store);
      compiled.push_back(in_child([&] { return first_call(dtype, 128256); }));
      stored.push_back(in_child([&] { return first_call(dtype, 128256); }));
    }
    fmt::print("{:<10} {:>7} {:>14.1f} {:>14.2f}\n", to_string(dtype), 128256, median(compiled), median(stored));
  }
}

void compiles() {
  fmt::print("\nforward, 128256 columns, milliseconds\n{:<10} {:<10} {:>6} {:>5} {:>7} {:>10} {:>10} {:>9} {:>5}\n",
             "level", "dtype", "total", "load", "set-up", "front end", "optimizer", "code gen.", "link");
  for (const std::string_view level : {"native", "x86-64-v4", "x86-64-v3", "x86-64-v2", "aarch64"})
    for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32}) {
      const bilogp::Specialization spec{bilogp::Operator::logp_forward, dtype, DType::int64, 128256};
      const auto request = bilogp::cpu::compile_request(spec, bilogp::cpu::resolve_target(level));
      std::vector<CompileTimes> times;
      for (int i = 0; i < processes; ++i)
        times.push_back(in_child([&] { return bilogp::cpu::compile(request).times; }));
      const auto phase = [&](double CompileTimes::* member) {
        std::vector<double> values;
        for (const CompileTimes& one : times) values.push_back(1000 * (one.*member));
        return median(values);
      };
      fmt::print("{:<10} {:<10} {:>6.0f} {:>5.0f} {:>7.0f} {:>10.0f} {:>10.0f} {:>9.0f} {:>5.0f}\n", level,
                 to_string(dtype), phase(&CompileTimes::total), phase(&CompileTimes::load),
                 phase(&CompileTimes::set_up), phase(&CompileTimes::front_end), phase(&CompileTimes::optimizer),
                 phase(&CompileTimes::code_generation), phase(&CompileTimes::link));
    }
}

} // namespace

int main() {
  const std::filesystem::path store = std::filesystem::temp_directory_path() / fmt::format("bilogp-bench-{}", getpid());
  setenv("BILOGP_CACHE_DIR", store.c_str(), 1);
  first_calls(store);
  std::filesystem::remove_all(store);
  compiles();
}
