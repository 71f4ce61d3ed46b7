#include "tests/cpu/random_case.hpp"

#include <cmath>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <fmt/format.h>

namespace bilogp::test {
namespace {

// Mostly small widths, where one second holds thousands of cases; rarely those of real vocabularies. Widths of 4096 and
// more are constants of their kernels, so there are only few of them to compile.
std::int64_t draw_columns(std::mt19937_64& random, bool slow) {
  if (slow) return 1 + static_cast<std::int64_t>(random() % 70);
  constexpr std::int64_t large[] = {4097, 8191, 50257};
  if (random() % 40 == 0) return large[random() % 3];
  if (random() % 8 == 0) return 1 + static_cast<std::int64_t>(random() % 4095);
  return 1 + static_cast<std::int64_t>(random() % 300);
}

class ControlRegister {
public:
#if defined(__x86_64__)
  explicit ControlRegister(unsigned mode) : before_(_mm_getcsr()) { _mm_setcsr(before_ | mode); }
  ~ControlRegister() { _mm_setcsr(before_); }
#else
  explicit ControlRegister(unsigned) {}
#endif
  ControlRegister(const ControlRegister&) = delete;
  ControlRegister& operator=(const ControlRegister&) = delete;

private:
  unsigned before_ = 0;
};

} // namespace

RandomCase draw_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RandomCase drawn;
  drawn.runtime = levels()[random() % levels().size()];
  Mix& mix = drawn.mix;
  mix.seed = seed;
  mix.storage = all_storages[random() % 3];
  mix.columns = draw_columns(random, is_slow(*drawn.runtime));
  mix.rows = 1 + static_cast<std::int64_t>(random() % (mix.columns > 1000 ? 4 : 40));
  constexpr std::int64_t id_counts[] = {1, 1, 1, 2, 6, 64};
  mix.ids_per_row = id_counts[random() % 6];
  mix.id_dtype = random() % 2 == 0 ? DType::int32 : DType::int64;
  if (random() % 2 == 0) mix.layout.row_padding = static_cast<std::int64_t>(random() % 70);
  if (random() % 2 == 0) mix.layout.misalignment = static_cast<std::int64_t>(random() % 8);
  if (random() % 3 == 0)
    mix.vocab_size = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(mix.columns));
  if (random() % 2 == 0) mix.temperature = std::exp2(static_cast<double>(random() % 40001) / 1000 - 20);
  mix.temperatures = static_cast<Temperatures>(random() % 4 == 0 ? 1 + random() % 2 : 0);
  mix.threads = random() % 3 == 0 ? 1 + static_cast<int>(random() % 16) : 1;
  drawn.cuts = static_cast<std::int64_t>(random() % 2 == 0 ? random() % 9 : 0);
  constexpr unsigned modes[] = {0, 0, 0, 0x8040, 0x2000, 0x4000, 0x6000, 0xe040};
  drawn.mode = modes[random() % 8];
  return drawn;
}

std::string run_case(const RandomCase& drawn) {
  Batch batch = mixed_batch(drawn.mix);
  for (std::int64_t r = 0; r < batch.rows(); ++r) { // the reference's own mode is the default one
    (void)batch.expected(r);
    if (batch.ids_per_row() == 1) (void)batch.expected_gradient(r);
  }
  std::mt19937_64 random(drawn.mix.seed);
  const auto cuts = random_cuts(random, drawn.mix.columns, drawn.cuts);
  std::string difference;
  {
    const ControlRegister control(drawn.mode);
    difference = check_everything(batch, *drawn.runtime, cuts);
  }
  if (difference.empty()) return difference;
  return fmt::format("{} cuts={} mode={:#x}: {}", describe(drawn.mix), cuts.size(), drawn.mode, difference);
}

} // namespace bilogp::test
