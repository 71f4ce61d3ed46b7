#include "tests/aarch64/job_builder.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

namespace bilogp::test {
namespace {

template<class T> void put(std::ofstream& file, const T* values, std::size_t count) {
  file.write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(count * sizeof(T)));
}

template<class T> std::vector<T> elements(std::span<const char> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

std::string describe_call(const JobCall& call, const JobAnswer& answer) {
  if (answer.fpcr_before == call.fpcr && answer.fpcr_after == call.fpcr) return {};
  return fmt::format("{} was called with FPCR {:#x} ({:#x} asked for) and left {:#x}\n", call.entry, answer.fpcr_before,
                     call.fpcr, answer.fpcr_after);
}

} // namespace

std::uint64_t JobBuilder::place(std::span<const char> initial, std::uint64_t misalignment) {
  const std::uint64_t at = (initial_.size() + 15) / 16 * 16 + misalignment;
  for (std::vector<char>* memory : {&initial_, &expected_}) {
    memory->resize(at, char(0x5a));
    memory->insert(memory->end(), initial.begin(), initial.end());
  }
  return at;
}

std::uint64_t JobBuilder::place_output(std::string name, reference::Storage storage, std::span<const char> initial,
                                       std::span<const char> expected, std::size_t row_length,
                                       std::uint64_t misalignment) {
  const std::uint64_t at = place(initial, misalignment);
  std::copy(expected.begin(), expected.end(), expected_.begin() + static_cast<std::ptrdiff_t>(at));
  outputs_.push_back({std::move(name), storage, at, expected.size(), row_length});
  return at;
}

void JobBuilder::allow_any_nan(std::uint64_t offset, std::uint64_t bytes) {
  any_nan_.emplace_back(offset, offset + bytes);
}

void JobBuilder::add_relocation(std::uint64_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, initial_.data() + at, sizeof word);
  if (word != 0) relocations_.push_back(at);
}

std::uint64_t JobBuilder::add_image(std::string image) {
  images_.push_back(std::move(image));
  return images_.size() - 1;
}

void JobBuilder::add_call(std::string_view entry, std::uint64_t image, std::uint64_t arguments, std::int64_t rows,
                          std::uint64_t fpcr) {
  JobCall call{};
  entry.copy(call.entry, sizeof call.entry - 1);
  call.image = image;
  call.arguments = arguments;
  call.row_end = rows;
  call.fpcr = fpcr;
  calls_.push_back(call);
}

void JobBuilder::write(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  file.exceptions(std::ios::failbit | std::ios::badbit);
  JobHeader header{};
  std::copy(std::begin(job_magic), std::end(job_magic), header.magic);
  header.image_count = images_.size();
  header.call_count = calls_.size();
  header.relocation_count = relocations_.size();
  header.memory_bytes = initial_.size();
  put(file, &header, 1);
  for (const std::string& image : images_) {
    const std::uint64_t bytes = image.size();
    put(file, &bytes, 1);
    put(file, image.data(), image.size());
  }
  put(file, calls_.data(), calls_.size());
  put(file, relocations_.data(), relocations_.size());
  put(file, initial_.data(), initial_.size());
}

bool JobBuilder::any_nan_allowed(std::uint64_t offset) const {
  const auto after = std::ranges::upper_bound(any_nan_, offset, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
  return after != any_nan_.begin() && offset < std::prev(after)->second;
}

std::string JobBuilder::compare_output(const Output& output, std::span<const char> memory) const {
  const auto got = memory.subspan(output.offset, output.bytes);
  const auto expected = std::span(expected_).subspan(output.offset, output.bytes);
  const auto difference = [&]<class Bits>(Bits) {
    std::vector<Bits> a = elements<Bits>(got);
    const std::vector<Bits> b = elements<Bits>(expected);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i] || !any_nan_allowed(output.offset + i * sizeof(Bits))) continue;
      if (reference::compare_bits<Bits>(output.storage, {&a[i], 1}, {&b[i], 1}, 1, reference::NanRule::any_payload)
              .none())
        a[i] = b[i];
    }
    return reference::compare_bits<Bits>(output.storage, a, b, output.row_length).report;
  };
  return output.storage == reference::Storage::float32 ? difference(std::uint32_t{}) : difference(std::uint16_t{});
}

std::string JobBuilder::compare(const std::string& answer_path) const {
  std::ifstream file(answer_path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const std::size_t head = calls_.size() * sizeof(JobAnswer);
  if (bytes.size() != head + initial_.size())
    return fmt::format("the answer has {} bytes, expected {}", bytes.size(), head + initial_.size());
  std::string report;
  const auto answers = elements<JobAnswer>(std::span(bytes).first(head));
  for (std::size_t i = 0; i < calls_.size(); ++i) report += describe_call(calls_[i], answers[i]);

  // What no output claims must not have changed either; outputs lie in order.
  const auto memory = std::span(bytes).subspan(head);
  std::size_t at = 0;
  const auto untouched_to = [&](std::size_t end) {
    for (; at < end; ++at)
      if (memory[at] != initial_[at]) {
        report += fmt::format("byte {} was overwritten, which belongs to no output\n", at);
        break;
      }
  };
  int shown = 0;
  for (const Output& output : outputs_) {
    untouched_to(output.offset);
    at = output.offset + output.bytes;
    const std::string difference = compare_output(output, memory);
    if (!difference.empty() && shown++ < 5) report += fmt::format("{}: {}\n", output.name, difference);
  }
  untouched_to(memory.size());
  if (shown > 5) report += fmt::format("and {} more outputs\n", shown - 5);
  return report;
}

std::size_t JobBuilder::output_bytes() const {
  std::size_t bytes = 0;
  for (const Output& output : outputs_) bytes += output.bytes;
  return bytes;
}

} // namespace bilogp::test
