// Instructions that one column costs, counted by stepping through calls of two widths, one instruction at a time, and
// taking the difference: what does not grow with the row drops out. Unlike times, these do not depend on who else uses
// the machine.
//
//   bench_instructions [--targets ...]
//
// Takes three to four minutes.
//
//   columns: instructions per column and, in brackets, per 64 bytes of logits
#include <csignal>
#include <cstdio>
#include <exception>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "bench/cpu/logits.hpp"
#include "bilogp/bilogp.hpp"

namespace {

using bilogp::DType;
using bilogp::TensorView;

constexpr std::int64_t narrow_row = 16384;
constexpr std::int64_t wide_row = 32768;
constexpr std::int64_t warm_rows = 16; // enough of them for what a level prepares for large calls only

// Steps through `body` in a child process, after `prepare`, and says how many instructions that took.
std::int64_t instructions_of(const std::function<void()>& prepare, const std::function<void()>& body) {
  void* memory = mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory to share with the process that is counted");
  auto* is_done = static_cast<volatile int*>(memory);
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    prepare();
    std::raise(SIGSTOP);
    body();
    *is_done = 1;
    for (;;) pause();
  }
  std::int64_t count = 0;
  int status = 0;
  const bool has_begun = waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;
  if (has_begun) ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL); // or it waits for ever without us
  while (has_begun && *is_done == 0) {
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0 || waitpid(child, &status, 0) != child ||
        !WIFSTOPPED(status))
      break;
    ++count;
  }
  const bool is_complete = *is_done != 0;
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  munmap(memory, sizeof(int));
  if (!is_complete) throw std::runtime_error("the process that is counted ended early, or may not be traced");
  return count;
}

struct Row {
  Row(DType type, std::int64_t columns, bool is_masked)
      : dtype(type), width(columns),
        words(static_cast<std::size_t>(columns * warm_rows) * static_cast<std::size_t>(bilogp::size_of(type)) / 2),
        gradient(words.size()) {
    bilogp::bench::fill(reinterpret_cast<char*>(words.data()), words.size() * 2, dtype, is_masked);
  }

  void forward(bilogp::Runtime& runtime, std::int64_t rows) {
    bilogp::LogpArgs args;
    args.logits = TensorView::contiguous(words.data(), dtype, {rows, width});
    args.target_ids = TensorView::contiguous(ids, DType::int64, {rows});
    args.logp = TensorView::contiguous(logp, DType::float32, {rows});
    args.row_state = TensorView::contiguous(state, DType::int32, {rows, 2});
    args.options.threads = 1;
    runtime.logp(args);
  }

  void backward(bilogp::Runtime& runtime, std::int64_t rows) {
    bilogp::LogpBackwardArgs args;
    args.logits = TensorView::contiguous(words.data(), dtype, {rows, width});
    args.target_ids = TensorView::contiguous(ids, DType::int64, {rows});
    args.row_state = TensorView::contiguous(state, DType::int32, {rows, 2});
    args.grad_logp = TensorView::contiguous(upstream, DType::float32, {rows});
    args.grad_logits = TensorView::contiguous(gradient.data(), dtype, {rows, width});
    args.options.threads = 1;
    runtime.logp_backward(args);
  }

  DType dtype;
  std::int64_t width;
  std::vector<std::uint16_t> words, gradient;
  std::int64_t ids[warm_rows] = {};
  float logp[warm_rows] = {}, upstream[warm_rows] = {1.0F};
  std::int32_t state[2 * warm_rows] = {};
};

std::string per_column(const std::string& target, DType dtype, bool is_masked, bool is_backward) {
  const auto count = [&](std::int64_t width) {
    Row row(dtype, width, is_masked);
    const auto call = [&](std::int64_t rows) {
      bilogp::Runtime& runtime = bilogp::Runtime::get(target);
      if (is_backward)
        row.backward(runtime, rows);
      else
        row.forward(runtime, rows);
    };
    const auto prepare = [&] {
      row.forward(bilogp::Runtime::get(target), warm_rows);
      call(warm_rows);
      call(1);
    };
    return instructions_of(prepare, [&] { call(1); });
  };
  const double columns = static_cast<double>(wide_row - narrow_row);
  const double each = static_cast<double>(count(wide_row) - count(narrow_row)) / columns;
  return fmt::format("{:.2f} ({:.0f})", each, each * (dtype == DType::float32 ? 16 : 32));
}

void run(const std::vector<std::string>& targets) {
  fmt::print("{:<24} {:<9} {:>14} {:>14} {:>14}\n", "target", "dtype", "forward", "quarter -inf", "backward");
  for (const std::string& target : targets)
    for (const auto& [dtype, name] : {std::pair{DType::bfloat16, "bfloat16"}, std::pair{DType::float16, "float16"},
                                      std::pair{DType::float32, "float32"}}) {
      fmt::print("{:<24} {:<9} {:>14} {:>14} {:>14}\n", target, name, per_column(target, dtype, false, false),
                 per_column(target, dtype, true, false), per_column(target, dtype, false, true));
      std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) try {
  CLI::App app("Instructions per column of the CPU kernels");
  std::vector<std::string> targets = {"cpu", "cpu:x86-64-v3", "cpu:x86-64-v2"};
  app.add_option("--targets", targets, "levels that this machine has");
  CLI11_PARSE(app, argc, argv);
  run(targets);
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_instructions: %s\n", error.what());
  return 1;
}
