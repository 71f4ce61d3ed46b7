// What a call costs beside its kernel: the table of loaded kernels, the checks of arguments, the launch.
//
// "kernel_alone" calls the loaded kernel with the arguments that the call builds; the difference to "call" is the
// overhead of the runtime. One row of 64 columns on the calling thread.
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "bilogp/bilogp.hpp"

namespace {

using bilogp::DType;
using bilogp::TensorView;

struct SmallCall {
  std::vector<float> logits = std::vector<float>(64, 0.5F);
  std::vector<std::int64_t> ids = {3};
  std::vector<float> logp = {0};
  bilogp::LogpArgs args{TensorView::contiguous(logits.data(), DType::float32, {1, 64}),
                        TensorView::contiguous(ids.data(), DType::int64, {1}),
                        TensorView::contiguous(logp.data(), DType::float32, {1}),
                        {},
                        {},
                        {},
                        nullptr};
};

void call(benchmark::State& state) {
  auto& runtime = bilogp::Runtime::get("cpu");
  SmallCall small;
  small.args.options.threads = 1;
  for (auto _ : state) {
    runtime.logp(small.args);
    benchmark::DoNotOptimize(small.logp[0]);
  }
}
BENCHMARK(call);

// An ignored row makes the kernel return at once: what is left is the runtime.
void call_of_an_ignored_row(benchmark::State& state) {
  auto& runtime = bilogp::Runtime::get("cpu");
  SmallCall small;
  small.ids[0] = -100;
  small.args.options.threads = 1;
  for (auto _ : state) {
    runtime.logp(small.args);
    benchmark::DoNotOptimize(small.logp[0]);
  }
}
BENCHMARK(call_of_an_ignored_row);

// A warm-up of a loaded kernel is a table hit and the making of its report.
void runtime_get(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(&bilogp::Runtime::get("cpu"));
}
BENCHMARK(runtime_get);

} // namespace

BENCHMARK_MAIN();
