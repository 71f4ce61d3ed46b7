#include "tests/aarch64/scenario.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "tests/reference/row_generators.hpp"

namespace bilogp::test {

using reference::Storage;

namespace {

std::size_t size_of(Storage storage) {
  return storage == Storage::float32 ? 4 : 2;
}

// Temperatures of rows: ordinary ones, the limits, and three that no answer exists for.
float row_temperature(std::size_t row) {
  constexpr float values[] = {1.0F, 0.7F, 0x1p-20F, 30.0F, 0.0F, 0x1p20F, 1.3F, -1.0F, 1e-3F, 0x1p21F};
  return values[row % std::size(values)];
}

float upstream(std::size_t row) {
  constexpr float values[] = {1.0F, -0.3F, 0.0F, 1e-40F, -3e38F, 0x1p-100F, INFINITY, 7.5F, -1e-3F, NAN};
  return values[row % std::size(values)];
}

bool is_bad(std::int64_t id, std::int64_t vocab, std::int64_t ignore_index) {
  return id != ignore_index && (id < 0 || id >= vocab);
}

template<class T> std::span<const char> bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Stores binary32 bits in the storage type.
void put(char* to, Storage storage, std::uint32_t bits) {
  const std::uint32_t narrow = reference::narrow(storage, bits);
  std::memcpy(to, &narrow, size_of(storage)); // little-endian
}

// A logit as the storage type has it, NaN payloads included.
void put_row(char* to, Storage storage, std::span<const std::uint32_t> row) {
  if (storage == Storage::float32) {
    std::memcpy(to, row.data(), row.size_bytes());
  } else {
    const std::vector<std::uint16_t> narrow = reference::to_16_bits(storage, row);
    std::memcpy(to, narrow.data(), narrow.size() * 2);
  }
}

} // namespace

ScenarioCalls::ScenarioCalls(JobBuilder& job, KernelImages& images, const Scenario& scenario)
    : job_(job), images_(images), scenario_(scenario),
      vocab_(scenario.vocab_size < 0 ? scenario.columns : scenario.vocab_size) {
  make_rows();
}

void ScenarioCalls::make_rows() {
  std::uint64_t seed = scenario_.seed;
  for (const reference::RowKind kind : reference::all_kinds()) {
    if (!reference::holds(kind, scenario_.storage)) continue;
    Row row;
    row.logits = reference::make_row(kind, scenario_.columns, scenario_.storage, seed);
    row.options.vocab_size = scenario_.vocab_size;
    row.options.temperature = scenario_.temperature_rows ? row_temperature(rows_.size()) : scenario_.temperature;
    row.ids = reference::make_target_ids(row.logits, ids_per_row, row.options, true, seed);
    row.grad_logp = upstream(rows_.size());
    row.answer = reference::score(row.logits, row.ids, row.options);
    rows_.push_back(std::move(row));
    ++seed;
  }
}

std::string ScenarioCalls::name(const std::string& what) const {
  return fmt::format("{}, {}, {} columns of which {} count, {}, temperature {}, FPCR {:#x}", what,
                     reference::to_string(scenario_.storage), scenario_.columns, vocab_, to_string(scenario_.id_dtype),
                     scenario_.temperature_rows ? "per row" : fmt::format("{}", scenario_.temperature), scenario_.fpcr);
}

std::vector<char> ScenarioCalls::stored_logits() const {
  const std::size_t stride = static_cast<std::size_t>(row_stride()) * size_of(scenario_.storage);
  std::vector<char> memory(rows_.size() * stride, char(0x7f)); // padding is NaN
  for (std::size_t r = 0; r < rows_.size(); ++r)
    put_row(memory.data() + r * stride, scenario_.storage, rows_[r].logits);
  return memory;
}

std::vector<char> ScenarioCalls::stored_gradients() const {
  std::vector<char> memory = stored_logits();
  const std::size_t size = size_of(scenario_.storage);
  char* out = memory.data();
  for (const Row& row : rows_) {
    const auto gradient = reference::gradient(row.logits, row.ids.front(), row.grad_logp, row.options);
    for (std::size_t j = 0; j < gradient.size(); ++j) put(out + j * size, scenario_.storage, gradient[j]);
    out += static_cast<std::size_t>(row_stride()) * size;
  }
  return memory;
}

std::uint64_t ScenarioCalls::place_ids() {
  std::vector<std::int64_t> wide;
  for (const Row& row : rows_) wide.insert(wide.end(), row.ids.begin(), row.ids.end());
  if (scenario_.id_dtype == DType::int64) return job_.place(bytes_of(wide));
  std::vector<std::int32_t> narrow;
  for (const std::int64_t id : wide) narrow.push_back(static_cast<std::int32_t>(id));
  return job_.place(bytes_of(narrow));
}

std::uint64_t ScenarioCalls::place_words(const std::string& name, const std::vector<std::uint32_t>& expected,
                                         std::size_t row_length) {
  const std::vector<std::uint32_t> before(expected.size(), 0x41424344);
  return job_.place_output(name, Storage::float32, bytes_of(before), bytes_of(expected), row_length);
}

std::uint64_t ScenarioCalls::place_errors(std::size_t ids, const std::string& name) {
  std::vector<std::int64_t> words(4);
  const std::vector<std::int64_t> before = words;
  for (std::size_t r = 0; r < rows_.size(); ++r)
    for (std::size_t k = 0; k < ids; ++k) {
      if (!is_bad(rows_[r].ids[k], vocab_, rows_[r].options.ignore_index)) continue;
      if (words[0]++ != 0) continue;
      words[1] = static_cast<std::int64_t>(r);
      words[2] = rows_[r].ids[k];
    }
  return job_.place_output(name, Storage::float32, bytes_of(before), bytes_of(words), 8);
}

std::uint64_t ScenarioCalls::place_states(bool as_output, const std::string& name) {
  std::vector<std::uint32_t> words;
  for (const Row& row : rows_) {
    words.push_back(row.answer.state.m_bits);
    words.push_back(static_cast<std::uint32_t>(row.answer.state.E));
  }
  return as_output ? place_words(name, words, 2) : job_.place(bytes_of(words));
}

kernel::RowOptions ScenarioCalls::options(std::uint64_t errors) {
  kernel::RowOptions result{};
  result.inner_rows = inner_rows;
  result.vocab_size = vocab_;
  result.ignore_index = rows_.front().options.ignore_index;
  result.temperature = scenario_.temperature;
  result.errors = offset_pointer<kernel::i64>(errors);
  if (scenario_.temperature_rows) {
    std::vector<float> temperatures;
    for (const Row& row : rows_) temperatures.push_back(row.options.temperature);
    result.temperature_rows = offset_pointer<const float>(job_.place(bytes_of(temperatures)));
    result.temperature_strides = strides(1);
  }
  return result;
}

// A NaN or infinite upstream gradient leaves the payload of its NaNs open.
void ScenarioCalls::allow_nan_gradients(std::uint64_t offset) {
  const std::size_t stride = static_cast<std::size_t>(row_stride()) * size_of(scenario_.storage);
  for (std::size_t r = 0; r < rows_.size(); ++r)
    if (!std::isfinite(rows_[r].grad_logp)) job_.allow_any_nan(offset + r * stride, stride);
}

float ScenarioCalls::target_logit(const Row& row, std::int64_t begin, std::int64_t end) const {
  const std::int64_t id = row.ids.front();
  const bool inside = id >= begin && id < end && id < vocab_ && id != row.options.ignore_index;
  return inside ? std::bit_cast<float>(row.logits[static_cast<std::size_t>(id)])
                : -std::numeric_limits<float>::infinity();
}

} // namespace bilogp::test
