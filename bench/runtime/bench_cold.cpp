// The first call of a process: with an empty store (load clang, compile, map) and from the store (read, map).
// Each figure is the median of fresh child processes; the phases of a compile are the compiler's own report.
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

#include "bilogp/bilogp.hpp"

namespace {

using bilogp::DType;
using bilogp::TensorView;

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

double in_child(DType dtype, std::int64_t vocab) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    const double milliseconds = first_call(dtype, vocab);
    const bool written = write(ends[1], &milliseconds, sizeof milliseconds) == sizeof milliseconds;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  double milliseconds = -1;
  const bool was_read = read(ends[0], &milliseconds, sizeof milliseconds) == sizeof milliseconds;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!was_read || status != 0) std::exit(1);
  return milliseconds;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

} // namespace

int main() {
  const std::filesystem::path store = std::filesystem::temp_directory_path() / fmt::format("bilogp-bench-{}", getpid());
  setenv("BILOGP_CACHE_DIR", store.c_str(), 1);
  fmt::print("{:<10} {:>7} {:>14} {:>14}\n", "dtype", "vocab", "compiled, ms", "from store, ms");
  for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32}) {
    std::vector<double> compiled;
    std::vector<double> stored;
    for (int i = 0; i < 5; ++i) {
      std::filesystem::remove_all(store);
      compiled.push_back(in_child(dtype, 128256));
      stored.push_back(in_child(dtype, 128256));
    }
    fmt::print("{:<10} {:>7} {:>14.1f} {:>14.2f}\n", to_string(dtype), 128256, median(compiled), median(stored));
  }
  std::filesystem::remove_all(store);
}
