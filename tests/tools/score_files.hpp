// Makes input files for bilogp-score, good and bad, runs it and reads what it wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/reference/sample_data.hpp"
#include "tests/tools/child_process.hpp"

namespace bilogp::test {

// Removed with all that is in it.
class TemporaryDirectory {
public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  [[nodiscard]] std::string file(std::string_view name) const { return (path_ / name).string(); }
  [[nodiscard]] std::vector<std::string> names() const; // of what is in it, sorted

private:
  std::filesystem::path path_;
};

void write_file(const std::string& path, std::string_view bytes);
std::string read_file(const std::string& path);

template<typename T> std::string bytes_of_values(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
template<typename T> std::vector<T> values_of_bytes(std::span<const std::byte> bytes) {
  const auto* const begin = reinterpret_cast<const char*>(bytes.data());
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy(begin, begin + values.size() * sizeof(T), reinterpret_cast<char*>(values.data()));
  return values;
}

struct NamedTensor {
  std::string name;
  std::string dtype; // "BF16"
  std::vector<std::int64_t> shape;
  std::string bytes;
};
std::string safetensors_bytes(const std::vector<NamedTensor>& tensors);
// A header as it is, right or wrong, before the data.
std::string safetensors_bytes(std::string_view header, std::string_view data);

std::string npy_bytes(std::string_view descr, const std::vector<std::int64_t>& shape, std::string_view data,
                      int major_version = 1);
std::string npy_bytes_with_header(std::string_view header, std::string_view data, int major_version = 1);

// The first rows of the sample as bytes of a storage type (its values are exact in all three).
std::string sample_logits(reference::Storage storage, std::int64_t rows);
std::string sample_ids(std::int64_t rows);

std::string sample_path();
const reference::ExpectedAnswers& expected_at_temperature_1();

// Runs bilogp-score with these arguments.
ChildResult run_score(std::vector<std::string> arguments, const ChildOptions& options = {});

} // namespace bilogp::test
