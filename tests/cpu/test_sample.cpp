// Rows of a real model and hand-made ones, whose answers an independent program computed.
#include <bit>
#include <cstring>

#include "tests/cpu/checks.hpp"
#include "tests/reference/compare.hpp"
#include "tests/reference/row_generators.hpp"
#include "tests/reference/sample_data.hpp"

using namespace bilogp;
using namespace bilogp::test;

namespace {

struct Answers {
  std::vector<float> logp, lse;
  std::vector<std::int32_t> state;
};

// Rows of one dtype, forward, with a state for the backward pass.
Answers score(Runtime& runtime, const TensorView& logits, const std::int64_t* ids, const LogpOptions& options) {
  const std::int64_t rows = logits.shape[0];
  const auto n = static_cast<std::size_t>(rows);
  Answers answers{std::vector<float>(n), std::vector<float>(n), std::vector<std::int32_t>(2 * n)};
  LogpArgs args;
  args.logits = logits;
  args.target_ids = TensorView::contiguous(ids, DType::int64, {rows});
  args.logp = TensorView::contiguous(answers.logp.data(), DType::float32, {rows});
  args.lse = TensorView::contiguous(answers.lse.data(), DType::float32, {rows});
  args.row_state = TensorView::contiguous(answers.state.data(), DType::int32, {rows, 2});
  args.options = options;
  runtime.logp(args);
  return answers;
}

void gradient(Runtime& runtime, const TensorView& logits, const std::int64_t* ids, const Answers& answers,
              const float* upstream, const LogpOptions& options, const TensorView& out) {
  const std::int64_t rows = logits.shape[0];
  LogpBackwardArgs args;
  args.logits = logits;
  args.target_ids = TensorView::contiguous(ids, DType::int64, {rows});
  args.row_state = TensorView::contiguous(answers.state.data(), DType::int32, {rows, 2});
  args.grad_logp = TensorView::strided(upstream, DType::float32, {rows}, {0});
  args.grad_logits = out;
  args.options = options;
  runtime.logp_backward(args);
}

std::vector<std::uint32_t> words(const std::vector<float>& values) {
  std::vector<std::uint32_t> result;
  for (const float value : values) result.push_back(std::bit_cast<std::uint32_t>(value));
  return result;
}

// The sample's rows in a storage type, all of which hold its values exactly.
std::vector<char> sample_bytes(Storage storage) {
  const auto& sample = reference::sample_rows();
  std::vector<char> bytes;
  for (std::int64_t r = 0; r < sample.rows; ++r) {
    const auto row = sample.row(r);
    const auto append = [&](const auto& elements) {
      const char* at = reinterpret_cast<const char*>(elements.data());
      bytes.insert(bytes.end(), at, at + elements.size() * sizeof elements[0]);
    };
    if (storage == Storage::float32)
      append(row);
    else
      append(reference::to_16_bits(storage, row));
  }
  return bytes;
}

} // namespace

TEST_SUITE_BEGIN("sample");

TEST_CASE("the sample's rows give the expected bits in every storage type, on every level") {
  const auto& sample = reference::sample_rows();
  const auto columns = static_cast<std::size_t>(sample.columns);
  const float one = 1;
  std::vector<float> gradients(static_cast<std::size_t>(sample.rows) * columns);
  for (const Storage storage : all_storages) {
    const std::vector<char> bytes = sample_bytes(storage);
    for (Runtime* runtime : levels())
      for (const auto& expected : reference::expected_answers()) {
        const std::int64_t rows = is_slow(*runtime) ? 2 : sample.rows;
        const auto n = static_cast<std::size_t>(rows);
        CAPTURE(expected.name);
        CAPTURE(std::string(runtime->target()));
        const auto logits = TensorView::contiguous(bytes.data(), dtype_of(storage), {rows, sample.columns});
        LogpOptions options;
        options.temperature = expected.temperature;
        const Answers answers = score(*runtime, logits, sample.target_ids.data(), options);
        CHECK(words(answers.logp) == std::vector(expected.logp.begin(), expected.logp.begin() + rows));
        CHECK(words(answers.lse) == std::vector(expected.lse.begin(), expected.lse.begin() + rows));
        for (std::size_t r = 0; r < n; ++r) {
          CHECK(static_cast<std::uint32_t>(answers.state[2 * r]) == expected.states[r].m_bits);
          CHECK(answers.state[2 * r + 1] == expected.states[r].E);
        }
        if (storage != Storage::float32) continue;
        const auto out = TensorView::contiguous(gradients.data(), DType::float32, {rows, sample.columns});
        gradient(*runtime, logits, sample.target_ids.data(), answers, &one, options, out);
        for (std::size_t r = 0; r < n; ++r) {
          std::vector<std::uint32_t> row(columns);
          std::memcpy(row.data(), gradients.data() + r * columns, columns * 4);
          CHECK(reference::crc32(row) == expected.gradient_crc32[r]);
        }
      }
  }
}

TEST_CASE("the sample's gradients in 16 bits are the rounded ones of float32") {
  const auto& sample = reference::sample_rows();
  for (const Storage storage : {Storage::float16, Storage::bfloat16}) {
    Batch batch(storage, sample.columns);
    for (const std::int64_t r : {0, 7, 20, 47})
      batch.add(sample.row(r), {sample.target_ids[static_cast<std::size_t>(r)]}, 1);
    for (Runtime* runtime : levels())
      if (!is_slow(*runtime)) check_same(check_everything(batch, *runtime, {16384, 16385, 40000}));
  }
}

TEST_CASE("hand-made cases give the expected bits on every level") {
  for (Runtime* runtime : levels())
    for (const auto& hand_case : reference::hand_cases()) {
      CAPTURE(hand_case.name);
      CAPTURE(std::string(runtime->target()));
      const auto columns = static_cast<std::int64_t>(hand_case.logits.size());
      const auto logits = TensorView::contiguous(hand_case.logits.data(), DType::float32, {1, columns});
      LogpOptions options;
      options.vocab_size = hand_case.options.vocab_size;
      options.validate = Validate::off;
      options.temperature_per_row = TensorView::contiguous(&hand_case.options.temperature, DType::float32, {1});
      const Answers answers = score(*runtime, logits, &hand_case.target, options);
      CHECK(words(answers.logp)[0] == hand_case.logp);
      CHECK(words(answers.lse)[0] == hand_case.lse);
      CHECK(static_cast<std::uint32_t>(answers.state[0]) == hand_case.state.m_bits);
      CHECK(answers.state[1] == hand_case.state.E);
      std::vector<float> row(hand_case.logits.size());
      gradient(*runtime, logits, &hand_case.target, answers, &hand_case.grad_logp, options,
               TensorView::contiguous(row.data(), DType::float32, {1, columns}));
      const bool open = !(hand_case.grad_logp - hand_case.grad_logp == 0); // NaN or infinite
      const auto difference =
          reference::compare_bits(words(row), hand_case.gradient, row.size(),
                                  open ? reference::NanRule::any_payload : reference::NanRule::exact_bits);
      CHECK_MESSAGE(difference.none(), difference.report);
    }
}

TEST_SUITE_END();
