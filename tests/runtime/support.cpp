#include "tests/runtime/support.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <stdexcept>

#include "tests/reference/canon_reference.hpp"
#include "tests/reference/compare.hpp"
#include "tests/reference/row_generators.hpp"

namespace runtime_test {
namespace {

namespace reference = bilogp::reference;

constexpr std::uint32_t pattern = 0xdeadbeefU; // of no answer: a huge negative number

bool is_pattern(std::uint32_t word) {
  return word == pattern;
}

std::map<std::string, ChildBody>& children() {
  static std::map<std::string, ChildBody> all;
  return all;
}

std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  bits.reserve(values.size());
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

} // namespace

Batch::Batch(std::int64_t rows_wanted, std::int64_t vocab_wanted, std::uint64_t seed)
    : rows(rows_wanted), vocab(vocab_wanted) {
  const auto row_count = static_cast<std::size_t>(rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::vector<std::uint32_t> bits =
        reference::make_row(reference::RowKind::normal_5, vocab, reference::Storage::float32,
                            seed * 1000 + static_cast<std::uint64_t>(row));
    for (const std::uint32_t word : bits) logits.push_back(std::bit_cast<float>(word));
    ids.push_back((row * 7 + static_cast<std::int64_t>(seed)) % vocab);
  }
  const float guard = std::bit_cast<float>(pattern);
  grad_logp.assign(row_count, 1.0F);
  logp.assign(row_count, guard);
  lse.assign(row_count, guard);
  grad.assign(logits.size(), guard);
  row_state.assign(2 * row_count, std::bit_cast<std::int32_t>(pattern));
}

bilogp::LogpArgs Batch::forward() {
  using bilogp::DType;
  using bilogp::TensorView;
  return {.logits = TensorView::contiguous(logits.data(), DType::float32, {rows, vocab}),
          .target_ids = TensorView::contiguous(ids.data(), DType::int64, {rows}),
          .logp = TensorView::contiguous(logp.data(), DType::float32, {rows}),
          .lse = TensorView::contiguous(lse.data(), DType::float32, {rows}),
          .row_state = TensorView::contiguous(row_state.data(), DType::int32, {rows, 2}),
          .options = {}};
}

bilogp::LogpBackwardArgs Batch::backward() {
  using bilogp::DType;
  using bilogp::TensorView;
  return {.logits = TensorView::contiguous(logits.data(), DType::float32, {rows, vocab}),
          .target_ids = TensorView::contiguous(ids.data(), DType::int64, {rows}),
          .row_state = TensorView::contiguous(row_state.data(), DType::int32, {rows, 2}),
          .grad_logp = TensorView::contiguous(grad_logp.data(), DType::float32, {rows}),
          .grad_logits = TensorView::contiguous(grad.data(), DType::float32, {rows, vocab}),
          .options = {}};
}

bilogp::LogpGradientArgs Batch::with_gradient() {
  const bilogp::LogpArgs scores = forward();
  const bilogp::LogpBackwardArgs gradients = backward();
  return {.logits = scores.logits,
          .target_ids = scores.target_ids,
          .grad_logp = gradients.grad_logp,
          .logp = scores.logp,
          .lse = scores.lse,
          .row_state = scores.row_state,
          .grad_logits = gradients.grad_logits,
          .options = {}};
}

bool Batch::outputs_untouched() const {
  return std::ranges::all_of(bits_of(logp), is_pattern) && std::ranges::all_of(bits_of(lse), is_pattern) &&
         std::ranges::all_of(bits_of(grad), is_pattern) && std::ranges::all_of(row_state, [](std::int32_t word) {
           return is_pattern(std::bit_cast<std::uint32_t>(word));
         });
}

std::string Batch::forward_differences(const bilogp::LogpOptions& options) const {
  reference::RowOptions row_options;
  row_options.vocab_size = options.vocab_size;
  row_options.ignore_index = options.ignore_index;
  row_options.temperature = static_cast<float>(options.temperature);
  std::vector<std::uint32_t> expected;
  std::vector<std::uint32_t> got;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    const auto columns = static_cast<std::size_t>(vocab);
    const std::vector<std::uint32_t> bits = bits_of(std::span(logits).subspan(row * columns, columns));
    const std::vector<std::int64_t> one{ids[row]};
    const reference::RowAnswer answer = reference::score(bits, one, row_options);
    expected.insert(expected.end(),
                    {answer.logp[0], answer.lse, answer.state.m_bits, static_cast<std::uint32_t>(answer.state.E)});
    got.insert(got.end(),
               {std::bit_cast<std::uint32_t>(logp[row]), std::bit_cast<std::uint32_t>(lse[row]),
                static_cast<std::uint32_t>(row_state[2 * row]), static_cast<std::uint32_t>(row_state[2 * row + 1])});
  }
  return reference::compare_bits(got, expected, 4).report;
}

std::string Batch::gradient_differences() const {
  std::vector<std::uint32_t> expected;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    const auto columns = static_cast<std::size_t>(vocab);
    const std::vector<std::uint32_t> bits = bits_of(std::span(logits).subspan(row * columns, columns));
    const std::vector<std::uint32_t> line = reference::gradient(bits, ids[row], grad_logp[row], {});
    expected.insert(expected.end(), line.begin(), line.end());
  }
  return reference::compare_bits(bits_of(grad), expected, static_cast<std::size_t>(vocab)).report;
}

bool says(const std::string& text, bilogp::ErrorKind kind, std::initializer_list<std::string_view> words) {
  if (!text.starts_with(std::string(to_string(kind)) + ": ") || text.find('\n') != std::string::npos) return false;
  return std::ranges::all_of(words, [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

TemporaryDirectory::TemporaryDirectory() {
  std::string name = std::filesystem::temp_directory_path() / "bilogp-runtime-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = name;
}
TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Child::Child(const char* name, ChildBody body) {
  children().emplace(name, body);
}

int run_as_child(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != "--child") return -1;
  const auto found = children().find(argv[2]);
  return found == children().end() ? 126 : found->second();
}

std::string this_program() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

std::set<std::string> mapped_files(std::string_view part) {
  std::set<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (const std::size_t path = line.find('/');
        path != std::string::npos && line.find(part, line.rfind('/')) != std::string::npos)
      files.insert(line.substr(path));
  return files;
}

} // namespace runtime_test
