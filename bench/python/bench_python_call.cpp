// The C++ side of bench_python.py's smallest call: one float32 row of four columns, in nanoseconds a call.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include <bilogp/bilogp.hpp>
#include <fmt/format.h>

int main() {
  using namespace bilogp;
  using Clock = std::chrono::steady_clock;
  const float logits[4] = {0.5F, -1, 2, 0};
  const std::int64_t id = 2;
  float logp = 0;
  const LogpArgs args{.logits = TensorView::contiguous(logits, DType::float32, {1, 4}),
                      .target_ids = TensorView::contiguous(&id, DType::int64, {1}),
                      .logp = TensorView::contiguous(&logp, DType::float32, {1})};
  Runtime& runtime = Runtime::get("auto");
  runtime.logp(args);
  constexpr int calls = 100'000;
  double best = std::numeric_limits<double>::max();
  for (int repeat = 0; repeat < 9; ++repeat) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) runtime.logp(args);
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / calls);
  }
  fmt::print("{:.1f}\n", best);
}
