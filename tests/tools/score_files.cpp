#include "tests/tools/score_files.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bilogp::test {
namespace {

std::string little_endian(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

} // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "bilogp-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> TemporaryDirectory::names() const {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    found.push_back(entry.path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string safetensors_bytes(std::string_view header, std::string_view data) {
  return little_endian(header.size(), 8) + std::string(header) + std::string(data);
}

std::string safetensors_bytes(const std::vector<NamedTensor>& tensors) {
  std::string header;
  std::string data;
  for (const NamedTensor& tensor : tensors) {
    header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", header.empty() ? "{" : ",",
                          tensor.name, tensor.dtype, fmt::join(tensor.shape, ","), data.size(),
                          data.size() + tensor.bytes.size());
    data += tensor.bytes;
  }
  return safetensors_bytes(header.empty() ? "{}" : header + "}", data);
}

std::string npy_bytes_with_header(std::string_view header, std::string_view data, int major_version) {
  return std::string("\x93NUMPY") + static_cast<char>(major_version) + '\0' +
         little_endian(header.size(), major_version == 1 ? 2 : 4) + std::string(header) + std::string(data);
}

std::string npy_bytes(std::string_view descr, const std::vector<std::int64_t>& shape, std::string_view data,
                      int major_version) {
  // As numpy writes it: (3,) for one dimension, padded with spaces to 64 bytes, a newline at the end.
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                                   fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  const std::size_t before = major_version == 1 ? 10 : 12;
  header.resize((before + header.size() + 1 + 63) / 64 * 64 - before - 1, ' ');
  return npy_bytes_with_header(header + "\n", data, major_version);
}

std::string sample_logits(reference::Storage storage, std::int64_t rows) {
  std::string bytes;
  for (std::int64_t row = 0; row < rows; ++row)
    for (const std::uint32_t bits : reference::sample_rows().row(row)) {
      const std::uint32_t stored = reference::narrow(storage, bits);
      bytes.append(reinterpret_cast<const char*>(&stored), storage == reference::Storage::float32 ? 4 : 2);
    }
  return bytes;
}

std::string sample_ids(std::int64_t rows) {
  const auto& ids = reference::sample_rows().target_ids;
  return bytes_of_values(std::vector<std::int64_t>(ids.begin(), ids.begin() + rows));
}

std::string sample_path() {
  return (reference::test_data_directory() / "smollm2_rollouts_bf16.safetensors").string();
}

const reference::ExpectedAnswers& expected_at_temperature_1() {
  for (const auto& answers : reference::expected_answers())
    if (answers.temperature == 1.0F) return answers;
  throw std::runtime_error("the test data has no answers at temperature 1");
}

ChildResult run_score(std::vector<std::string> arguments, const ChildOptions& options) {
  arguments.insert(arguments.begin(), BILOGP_SCORE);
  return run_child(arguments, options);
}

} // namespace bilogp::test
