// The reference against answers computed by an independent program.
#include <doctest/doctest.h>

#include "tests/reference/compare.hpp"
#include "tests/reference/row_generators.hpp"
#include "tests/reference/sample_data.hpp"

namespace reference = bilogp::reference;
using reference::Storage;

namespace {

// The row after a trip through the storage type, which holds every sample value exactly.
std::vector<std::uint32_t> stored_row(const reference::SampleRows& sample, std::int64_t index, Storage storage) {
  std::vector<std::uint32_t> row = sample.row(index);
  for (std::uint32_t& bits : row) {
    const std::uint32_t element = reference::narrow(storage, bits);
    bits = reference::widen(storage, &element); // little-endian: a 16-bit element lies in the low half
  }
  return row;
}

void check_sample(const reference::ExpectedAnswers& expected, Storage storage) {
  const auto& sample = reference::sample_rows();
  reference::RowOptions options;
  options.temperature = expected.temperature;
  REQUIRE(expected.logp.size() == static_cast<std::size_t>(sample.rows));
  for (std::int64_t i = 0; i < sample.rows; ++i) {
    const auto at = static_cast<std::size_t>(i);
    CAPTURE(i);
    const auto row = stored_row(sample, i, storage);
    const auto answer = reference::score(row, {&sample.target_ids[at], 1}, options);
    CHECK(answer.logp[0] == expected.logp[at]);
    CHECK(answer.lse == expected.lse[at]);
    CHECK(answer.state.m_bits == expected.states[at].m_bits);
    CHECK(answer.state.E == expected.states[at].E);
    const auto gradient = reference::gradient(row, sample.target_ids[at], 1.0F, options);
    CHECK(reference::crc32(gradient) == expected.gradient_crc32[at]);
  }
}

} // namespace

TEST_CASE("sample rows are all there") {
  const auto& sample = reference::sample_rows();
  CHECK(sample.rows == 48);
  CHECK(sample.columns == 49152);
  CHECK(sample.sequence_ids.size() == 48);
  CHECK(reference::expected_answers().size() == 2);
  CHECK(reference::hand_cases().size() == 38);
}

TEST_CASE("sample rows give the expected bits in every storage type") {
  for (const auto& expected : reference::expected_answers()) {
    for (const Storage storage : {Storage::float32, Storage::float16, Storage::bfloat16}) {
      CAPTURE(expected.name);
      CAPTURE(reference::to_string(storage));
      check_sample(expected, storage);
    }
  }
}

TEST_CASE("hand-made cases give the expected bits") {
  for (const auto& hand_case : reference::hand_cases()) {
    CAPTURE(hand_case.name);
    const auto answer = reference::score(hand_case.logits, {&hand_case.target, 1}, hand_case.options);
    CHECK(answer.logp[0] == hand_case.logp);
    CHECK(answer.lse == hand_case.lse);
    CHECK_MESSAGE(answer.state == hand_case.state, reference::to_string(answer.state));
    const auto gradient =
        reference::gradient(hand_case.logits, hand_case.target, hand_case.grad_logp, hand_case.options);
    const auto difference = reference::compare_bits(gradient, hand_case.gradient, hand_case.logits.size());
    CHECK_MESSAGE(difference.none(), difference.report);
  }
}

TEST_CASE("crc32 is zlib's") {
  // "12345678" and its published check value.
  const std::vector<std::uint32_t> words{0x34333231, 0x38373635};
  CHECK(reference::crc32(words) == 0x9ae0daaf);
}
