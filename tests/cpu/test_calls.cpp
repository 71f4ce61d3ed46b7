// What a caller may vary: ids per row, layouts of memory, ignored rows, leading dimensions, floating-point modes.
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "tests/cpu/checks.hpp"
#include "tests/reference/row_generators.hpp"

using namespace bilogp;
using namespace bilogp::test;

TEST_SUITE_BEGIN("calls");

TEST_CASE("several target ids per row") {
  for (Runtime* runtime : levels())
    for (const std::int64_t ids : {1, 2, 6, 64})
      for (const Storage storage : all_storages)
        for (const DType id_dtype : {DType::int32, DType::int64})
          check_mix(
              {.storage = storage, .columns = 150, .rows = 30, .seed = 2, .ids_per_row = ids, .id_dtype = id_dtype},
              *runtime);
}

TEST_CASE("padded rows and misaligned bases") {
  for (Runtime* runtime : levels())
    for (const Storage storage : all_storages)
      for (const std::int64_t padding : {0, 1, 3, 16, 61})
        for (const std::int64_t misalignment : {0, 1, 2, 3, 6})
          check_mix({.storage = storage,
                     .columns = is_slow(*runtime) ? 70 : 330,
                     .rows = 6,
                     .seed = static_cast<std::uint64_t>(padding * 10 + misalignment),
                     .layout = {padding, misalignment}},
                    *runtime, 2);
}

TEST_CASE("an ignore_index of the caller's, also one that is a column") {
  for (Runtime* runtime : levels())
    for (const std::int64_t ignored : {-100, -1, 0, 5, 1000}) {
      Batch batch(Storage::float16, 90);
      batch.options.ignore_index = ignored;
      for (std::int64_t r = 0; r < 20; ++r)
        batch.add(reference::make_row(reference::RowKind::normal_5, 90, Storage::float16, 5),
                  {r % 3 == 0 ? ignored : r}, 0.5F);
      check_same(check_everything(batch, *runtime, {30, 31}));
    }
}

TEST_CASE("leading dimensions with odd strides") {
  // Stored as [3][4][5][columns + 1]; viewed as [2, 4, 3, columns] with steps in the outer dimensions, without the
  // last.
  constexpr std::int64_t columns = 130;
  constexpr std::int64_t row = columns + 1;
  std::vector<float> stored(static_cast<std::size_t>(60 * row));
  for (std::int64_t r = 0; r < 60; ++r) {
    const auto bits =
        reference::make_row(reference::RowKind::normal_5, row, Storage::float32, 40 + static_cast<std::uint64_t>(r));
    std::memcpy(stored.data() + r * row, bits.data(), bits.size() * 4);
  }
  std::vector<std::int64_t> ids(24);
  for (std::size_t i = 0; i < 24; ++i) ids[i] = static_cast<std::int64_t>(7 * i % columns);
  std::vector<float> upstream = {0.25F};
  std::vector<float> logp(24);
  std::vector<float> lse(48);
  std::vector<std::int32_t> state(48);
  std::vector<float> gradient(24 * columns);
  LogpArgs args;
  args.logits =
      TensorView::strided(stored.data() + row, DType::float32, {2, 4, 3, columns}, {40 * row, 5 * row, row, 1});
  args.target_ids = TensorView::contiguous(ids.data(), DType::int64, {2, 4, 3});
  args.logp = TensorView::contiguous(logp.data(), DType::float32, {2, 4, 3});
  args.lse = TensorView::strided(lse.data(), DType::float32, {2, 4, 3}, {2, 12, 4}); // transposed, every second element
  args.row_state = TensorView::contiguous(state.data(), DType::int32, {2, 4, 3, 2});
  LogpBackwardArgs backward;
  backward.logits = args.logits;
  backward.target_ids = args.target_ids;
  backward.row_state = args.row_state;
  backward.grad_logp = TensorView::strided(upstream.data(), DType::float32, {2, 4, 3}, {0, 0, 0});
  backward.grad_logits = TensorView::contiguous(gradient.data(), DType::float32, {2, 4, 3, columns});
  for (Runtime* runtime : levels()) {
    runtime->logp(args);
    runtime->logp_backward(backward);
    for (std::int64_t r = 0; r < 24; ++r) {
      const std::int64_t a = r / 12, b = r / 3 % 4, c = r % 3;
      std::vector<std::uint32_t> bits(columns);
      std::memcpy(bits.data(), stored.data() + ((2 * a * 4 + b) * 5 + 1 + c) * row, columns * 4);
      const auto at = static_cast<std::size_t>(r);
      const auto answer = reference::score(bits, {&ids[at], 1}, {});
      CHECK(std::bit_cast<std::uint32_t>(logp[at]) == answer.logp[0]);
      CHECK(std::bit_cast<std::uint32_t>(lse[static_cast<std::size_t>(2 * a + 12 * b + 4 * c)]) == answer.lse);
      CHECK(static_cast<std::uint32_t>(state[2 * at]) == answer.state.m_bits);
      CHECK(state[2 * at + 1] == answer.state.E);
      const auto right = reference::gradient(bits, ids[at], 0.25F, {});
      CHECK(std::memcmp(right.data(), static_cast<const void*>(gradient.data() + r * columns), columns * 4) == 0);
    }
  }
}

#if defined(__x86_64__)
TEST_CASE("floating-point modes of the caller neither matter nor change") {
  const unsigned before = _mm_getcsr();
  for (Runtime* runtime : levels())
    for (const Storage storage : all_storages)
      for (const unsigned mode : {0x8040U, 0x8000U, 0x0040U, 0x2000U, 0x4000U, 0x6000U, 0xe040U})
        for (const int threads : {1, 4}) {
          Mix mix{.storage = storage,
                  .columns = is_slow(*runtime) ? 60 : 400,
                  .seed = mode,
                  .temperature = threads == 4 ? 0.7 : 1,
                  .threads = threads};
          Batch batch = mixed_batch(mix);
          for (std::int64_t r = 0; r < batch.rows(); ++r) {
            (void)batch.expected(r);
            (void)batch.expected_gradient(r); // the reference's own mode is the default one
          }
          const unsigned odd = (before & ~0xe040U) | mode;
          _mm_setcsr(odd);
          const std::string difference = check_everything(batch, *runtime, {20, 21});
          const unsigned after = _mm_getcsr();
          _mm_setcsr(before);
          check_same(difference);
          CHECK((after & ~0x3fU) == (odd & ~0x3fU));
        }
}
#endif

TEST_SUITE_END();
