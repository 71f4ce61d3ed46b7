// What a call costs beside its kernel: the table of loaded kernels, the checks of arguments, the launch.
//
// "kernel" calls the compiled kernel with the arguments that "call" builds for it: "overhead" is the difference, which
// is what the runtime costs. One row of 64 columns on the calling thread.
#include <cstdint>
#include <ctime>
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

// The call, warmed up: its kernel is loaded.
struct Call {
  Call() {
    small.args.options.threads = 1;
    (*this)();
  }
  void operator()() {
    runtime.logp(small.args);
    benchmark::DoNotOptimize(small.logp[0]);
  }
  bilogp::Runtime& runtime = bilogp::Runtime::get("cpu");
  SmallCall small;
};

// The same kernel, called with the arguments that the call builds.
struct Kernel {
  Kernel()
      : image(bilogp::cpu::compile(bilogp::cpu::compile_request(spec, bilogp::cpu::resolve_target("native"))).image),
        function(reinterpret_cast<bilogp::cpu::KernelFunction>(image.entry(bilogp::cpu::entry_name(spec)))) {
    arguments.options.inner_rows = 1;
    arguments.options.vocab_size = 64;
    arguments.options.ignore_index = -100;
    arguments.options.temperature = 1;
    arguments.logits = small.logits.data();
    arguments.target_ids = small.ids.data();
    arguments.ids_per_row = 1;
    arguments.logp = small.logp.data();
  }
  void operator()() {
    function(&arguments, 0, 1);
    benchmark::DoNotOptimize(small.logp[0]);
  }
  const bilogp::Specialization spec{bilogp::Operator::logp_forward, DType::float32, DType::int64};
  SmallCall small;
  bilogp::cpu::MappedImage image;
  bilogp::cpu::KernelFunction function;
  bilogp::kernel::LogpForwardArguments arguments{};
};

template<class Operation> void each(benchmark::State& state) {
  Operation operation;
  for (auto _ : state) operation();
}
BENCHMARK(each<Call>)->Name("call");
BENCHMARK(each<Kernel>)->Name("kernel");

// Of the thread's own processor time, so that what else runs on the machine does not count.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template<class Operation> double seconds_of(Operation& operation, int times) {
  const double start = thread_seconds();
  for (int i = 0; i < times; ++i) operation();
  return thread_seconds() - start;
}

// The two in turn, a thousand at a time, so that a machine's mood hits both; the median of all differences counts.
void overhead(benchmark::State& state) {
  constexpr int times = 1000;
  static Call call; // once for all repetitions
  static Kernel kernel;
  for (auto _ : state) {
    const double difference = seconds_of(call, times) - seconds_of(kernel, times);
    state.SetIterationTime(difference > 0 ? difference / times : 0);
  }
}
BENCHMARK(overhead)->UseManualTime()->Iterations(1)->Repetitions(301)->ReportAggregatesOnly(true);

void runtime_get(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(&bilogp::Runtime::get("cpu"));
}
BENCHMARK(runtime_get);

} // namespace

BENCHMARK_MAIN();
