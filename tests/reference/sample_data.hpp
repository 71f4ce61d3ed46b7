// The sample rows, their expected answers and the hand-made cases of tests/data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tests/reference/canon_reference.hpp"

namespace bilogp::reference {

// tests/data of the source tree the library was built from.
std::filesystem::path test_data_directory();

// smollm2_rollouts_bf16.safetensors: rows of a real model, in storage order.
struct SampleRows {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::uint16_t> logits; // bfloat16 bits [rows, columns]
  std::vector<std::int64_t> target_ids;
  std::vector<std::int64_t> sequence_ids;

  // One row in binary32 bits; every value is exact in float16 too.
  [[nodiscard]] std::vector<std::uint32_t> row(std::int64_t index) const;
};
const SampleRows& sample_rows(); // read once; throws std::runtime_error when the file is missing or damaged

// One entry of smollm2_rollouts_expected.json, an element per row. Floats as bits.
struct ExpectedAnswers {
  std::string name;
  float temperature = 1;
  std::vector<std::uint32_t> logp;
  std::vector<std::uint32_t> lse;
  std::vector<Node> states;
  std::vector<std::uint32_t> gradient_crc32; // of the binary32 gradient row at upstream 1, before the last rounding
};
const std::vector<ExpectedAnswers>& expected_answers();

// One entry of hand_cases.json: a small float32 row with everything it answers.
struct HandCase {
  std::string name;
  std::vector<std::uint32_t> logits;
  std::int64_t target = 0;
  RowOptions options; // ignore_index is -100
  float grad_logp = 1;
  std::uint32_t logp = 0;
  std::uint32_t lse = 0;
  Node state;
  std::vector<std::uint32_t> gradient;
};
const std::vector<HandCase>& hand_cases();

// CRC-32 as zlib's, over the little-endian bytes of the words.
std::uint32_t crc32(std::span<const std::uint32_t> words);

} // namespace bilogp::reference
