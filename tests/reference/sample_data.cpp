#include "tests/reference/sample_data.hpp"

#include <bit>
#include <charconv>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

static_assert(std::endian::native == std::endian::little, "the sample file is read as it lies on disk");

namespace bilogp::reference {
namespace {

using nlohmann::json;

std::ifstream open_data(const std::string& name) {
  const auto path = test_data_directory() / name;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(fmt::format("cannot read the test data {}", path.string()));
  return file;
}

std::uint32_t parse_bits(const json& text) {
  const auto& digits = text.get_ref<const std::string&>();
  std::uint32_t bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  if (error != std::errc{} || end != digits.data() + digits.size() || digits.size() != 8)
    throw std::runtime_error(fmt::format("'{}' in the test data is not 8 hexadecimal digits", digits));
  return bits;
}

std::vector<std::uint32_t> parse_bit_list(const json& list) {
  std::vector<std::uint32_t> bits;
  for (const json& text : list) bits.push_back(parse_bits(text));
  return bits;
}

template<typename T>
std::vector<T> read_tensor(std::ifstream& file, const json& header, const std::string& name, const char* dtype,
                           std::streamoff data_begin) {
  const json& entry = header.at(name);
  if (entry.at("dtype") != dtype) throw std::runtime_error(fmt::format("tensor {} is not {}", name, dtype));
  const auto begin = entry.at("data_offsets").at(0).get<std::int64_t>();
  const auto end = entry.at("data_offsets").at(1).get<std::int64_t>();
  std::vector<T> values(static_cast<std::size_t>(end - begin) / sizeof(T));
  file.seekg(data_begin + begin);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(end - begin));
  if (!file) throw std::runtime_error(fmt::format("the sample file ends inside tensor {}", name));
  return values;
}

SampleRows load_sample_rows() {
  std::ifstream file = open_data("smollm2_rollouts_bf16.safetensors");
  std::uint64_t header_size = 0;
  file.read(reinterpret_cast<char*>(&header_size), sizeof(header_size));
  if (!file || header_size > 1'000'000) throw std::runtime_error("the sample file has no safetensors header");
  std::string text(static_cast<std::size_t>(header_size), '\0');
  file.read(text.data(), static_cast<std::streamsize>(header_size));
  const json header = json::parse(text);
  const auto data_begin = static_cast<std::streamoff>(sizeof(header_size) + header_size);

  SampleRows sample;
  const json& shape = header.at("logits").at("shape");
  sample.rows = shape.at(0).get<std::int64_t>();
  sample.columns = shape.at(1).get<std::int64_t>();
  sample.logits = read_tensor<std::uint16_t>(file, header, "logits", "BF16", data_begin);
  sample.target_ids = read_tensor<std::int64_t>(file, header, "target_ids", "I64", data_begin);
  sample.sequence_ids = read_tensor<std::int64_t>(file, header, "sequence_ids", "I64", data_begin);
  const auto rows = static_cast<std::size_t>(sample.rows);
  if (sample.logits.size() != rows * static_cast<std::size_t>(sample.columns) || sample.target_ids.size() != rows)
    throw std::runtime_error("the shapes of the sample file do not fit its tensors");
  return sample;
}

std::vector<ExpectedAnswers> load_expected_answers() {
  std::ifstream file = open_data("smollm2_rollouts_expected.json");
  const json document = json::parse(file);
  std::vector<ExpectedAnswers> all;
  for (const auto& [name, entry] : document.items()) {
    ExpectedAnswers answers;
    answers.name = name;
    answers.temperature = std::stof(name.substr(name.find("T=") + 2));
    answers.logp = parse_bit_list(entry.at("logp"));
    answers.lse = parse_bit_list(entry.at("lse"));
    const auto significands = parse_bit_list(entry.at("node_m"));
    for (std::size_t i = 0; i < significands.size(); ++i)
      answers.states.push_back({significands[i], entry.at("node_E").at(i).get<std::int32_t>()});
    answers.gradient_crc32 = parse_bit_list(entry.at("grad_fp32_crc32_per_row"));
    all.push_back(std::move(answers));
  }
  return all;
}

std::vector<HandCase> load_hand_cases() {
  std::ifstream file = open_data("hand_cases.json");
  const json document = json::parse(file);
  std::vector<HandCase> all;
  for (const json& entry : document.at("cases")) {
    HandCase hand_case;
    hand_case.name = entry.at("name").get<std::string>();
    hand_case.logits = parse_bit_list(entry.at("logits"));
    hand_case.target = entry.at("target").get<std::int64_t>();
    hand_case.options.vocab_size = entry.at("vocab_size").get<std::int64_t>();
    hand_case.options.temperature = std::bit_cast<float>(parse_bits(entry.at("temperature")));
    hand_case.grad_logp = std::bit_cast<float>(parse_bits(entry.at("g")));
    hand_case.logp = parse_bits(entry.at("logp"));
    hand_case.lse = parse_bits(entry.at("lse"));
    hand_case.state = {parse_bits(entry.at("node_m")), entry.at("node_E").get<std::int32_t>()};
    hand_case.gradient = parse_bit_list(entry.at("grad"));
    all.push_back(std::move(hand_case));
  }
  return all;
}

} // namespace

std::filesystem::path test_data_directory() {
  return BILOGP_TEST_DATA;
}

std::vector<std::uint32_t> SampleRows::row(std::int64_t index) const {
  const auto width = static_cast<std::size_t>(columns);
  std::vector<std::uint32_t> bits(width);
  const std::uint16_t* first = logits.data() + static_cast<std::size_t>(index) * width;
  for (std::size_t j = 0; j < width; ++j) bits[j] = widen(Storage::bfloat16, first + j);
  return bits;
}

const SampleRows& sample_rows() {
  static const SampleRows sample = load_sample_rows();
  return sample;
}

const std::vector<ExpectedAnswers>& expected_answers() {
  static const std::vector<ExpectedAnswers> answers = load_expected_answers();
  return answers;
}

const std::vector<HandCase>& hand_cases() {
  static const std::vector<HandCase> cases = load_hand_cases();
  return cases;
}

std::uint32_t crc32(std::span<const std::uint32_t> words) {
  std::uint32_t crc = 0xffffffffU;
  for (const std::uint32_t word : words) {
    crc ^= word; // four little-endian bytes at once
    for (int bit = 0; bit < 32; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

} // namespace bilogp::reference
