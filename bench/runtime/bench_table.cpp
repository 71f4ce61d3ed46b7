// A hit in the table of loaded kernels: the search alone, among as many kernels as a busy process has.
#include <benchmark/benchmark.h>

#include "runtime/kernel_table.hpp"

namespace {

void table_hit(benchmark::State& state) {
  bilogp::KernelTable table;
  bilogp::Specialization spec;
  for (int vocab = 0; vocab < 64; ++vocab) {
    spec.vocab_size = 4096 + vocab;
    table.find_or_make(kernel_key(spec, 0), [] { return bilogp::LoadedKernel{}; });
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(spec);
    benchmark::DoNotOptimize(table.find(kernel_key(spec, 0)));
  }
}
BENCHMARK(table_hit);

} // namespace

BENCHMARK_MAIN();
