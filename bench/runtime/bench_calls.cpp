// What a call costs beside its kernel: the table of loaded kernels, the checks of arguments, the launch.
//
// "kernel" calls the compiled kernel with the arguments that "call" builds for it: the difference is the overhead of
// the runtime. One row of 64 columns on the calling thread.
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "bilogp/bilogp.hpp"
#include "runtime/backends/cpu/image.hpp"
#include "runtime/backends/cpu/kernels.hpp"
#include "runtime/kernel_arguments.hpp"

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

void kernel(benchmark::State& state) {
  const bilogp::Specialization spec{bilogp::Operator::logp_forward, DType::float32, DType::int64};
  const auto request = bilogp::cpu::compile_request(spec, bilogp::cpu::resolve_target("native"));
  const bilogp::cpu::MappedImage image(bilogp::cpu::compile(request).image);
  const auto function = reinterpret_cast<bilogp::cpu::KernelFunction>(image.entry(bilogp::cpu::entry_name(spec)));
  SmallCall small;
  bilogp::kernel::LogpForwardArguments arguments{};
  arguments.options.inner_rows = 1;
  arguments.options.vocab_size = 64;
  arguments.options.ignore_index = -100;
  arguments.options.temperature = 1;
  arguments.logits = small.logits.data();
  arguments.target_ids = small.ids.data();
  arguments.ids_per_row = 1;
  arguments.logp = small.logp.data();
  for (auto _ : state) {
    function(&arguments, 0, 1);
    benchmark::DoNotOptimize(small.logp[0]);
  }
}
BENCHMARK(kernel);

void runtime_get(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(&bilogp::Runtime::get("cpu"));
}
BENCHMARK(runtime_get);

} // namespace

BENCHMARK_MAIN();
