#include "tests/gpu_model/model_batch.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "tests/reference/compare.hpp"

namespace gpu_model {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float upstreams[] = {1, -0.001F, 0.3F, nan, -7.25F, 1.0e-38F, -1, 1.0e30F, 0, -infinity, -0.0F, 3.0e38F, 2};
constexpr float temperatures[] = {1, 0.7F, 2, 0x1p-20F, 0x1p20F, 1.3F, 0.01F, 100, 0, nan, 0x1p-21F};

template<std::size_t N> float pick(const float (&values)[N], std::mt19937_64& random) {
  return values[random() % N];
}

std::uint32_t stored_bits(const char* at, std::int64_t size) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, static_cast<std::size_t>(size));
  return bits;
}

std::string compare_states(const std::vector<std::int32_t>& got, const std::vector<reference::Node>& expected) {
  for (std::size_t r = 0; r < expected.size(); ++r) {
    const reference::Node node{static_cast<std::uint32_t>(got[2 * r]), got[2 * r + 1]};
    if (node != expected[r])
      return fmt::format("row {} state {}, expected {}", r, reference::to_string(node),
                         reference::to_string(expected[r]));
  }
  return {};
}

} // namespace

ModelBatch::ModelBatch(const BatchShape& shape) : shape_(shape) {
  std::vector<reference::RowKind> kinds;
  std::copy_if(reference::all_kinds().begin(), reference::all_kinds().end(), std::back_inserter(kinds),
               [&](reference::RowKind kind) { return reference::holds(kind, shape.storage); });
  const std::int64_t count = shape.rows == 0 ? std::ssize(kinds) : shape.rows;
  std::mt19937_64 random(shape.seed);
  const std::size_t first = shape.rows == 0 ? 0 : random() % kinds.size();
  for (std::int64_t r = 0; r < count; ++r) {
    const reference::RowKind kind = kinds[(first + static_cast<std::size_t>(r)) % kinds.size()];
    add_row(reference::make_row(kind, shape.columns, shape.storage, random()), random);
  }
}

ModelBatch::ModelBatch(const BatchShape& shape, std::vector<std::vector<std::uint32_t>> logits) : shape_(shape) {
  std::mt19937_64 random(shape.seed);
  for (std::vector<std::uint32_t>& row : logits) add_row(std::move(row), random);
}

void ModelBatch::add_row(std::vector<std::uint32_t> logits, std::mt19937_64& random) {
  Row row;
  row.logits = std::move(logits);
  row.temperature = shape_.row_temperatures ? pick(temperatures, random) : shape_.temperature;
  const reference::RowOptions options = reference_options(row);
  row.ids = reference::make_target_ids(row.logits, shape_.ids_per_row, options, true, random());
  if (shape_.ignored_of_8 > 0 && random() % 8 < shape_.ignored_of_8) row.ids.assign(row.ids.size(), -100);
  row.upstream = pick(upstreams, random);
  row.answer = reference::score(row.logits, row.ids, options);
  if (shape_.ids_per_row == 1) row.gradient = reference::gradient(row.logits, row.ids.front(), row.upstream, options);
  rows_.push_back(std::move(row));
}

reference::RowOptions ModelBatch::reference_options(const Row& row) const {
  reference::RowOptions options;
  options.vocab_size = shape_.vocab_size;
  options.temperature = row.temperature;
  return options;
}

std::int64_t ModelBatch::vocab_size() const {
  return shape_.vocab_size < 0 ? shape_.columns : shape_.vocab_size;
}

bilogp::kernel::RowStrides ModelBatch::matrix_strides() const {
  const std::int64_t inner = shape_.columns + shape_.row_padding;
  return {shape_.inner_rows * inner + 5, inner};
}
bilogp::kernel::RowStrides ModelBatch::strides(std::int64_t inner) const {
  return {shape_.inner_rows * inner, inner};
}
std::int64_t ModelBatch::row_offset(std::int64_t row) const {
  const bilogp::kernel::RowStrides s = matrix_strides();
  if (shape_.inner_rows == 0) return row * s.inner;
  return row / shape_.inner_rows * s.outer + row % shape_.inner_rows * s.inner;
}

// Whatever is not a logit is NaN.
void ModelBatch::fill(Matrix& matrix) const {
  const std::int64_t size = element_size();
  matrix.memory.assign(static_cast<std::size_t>((row_offset(rows()) + shape_.columns + shape_.offset) * size + 128),
                       char(0x7f));
  const auto address = reinterpret_cast<std::uintptr_t>(matrix.memory.data());
  matrix.base = matrix.memory.data() + (64 - address % 64) + shape_.offset * size;
  for (std::int64_t r = 0; r < rows(); ++r) {
    const std::vector<std::uint32_t>& logits = rows_[static_cast<std::size_t>(r)].logits;
    char* row = matrix.base + row_offset(r) * size;
    if (size == 4) {
      std::memcpy(row, logits.data(), logits.size() * 4);
    } else {
      const std::vector<std::uint16_t> halves = reference::to_16_bits(shape_.storage, logits);
      std::memcpy(row, halves.data(), halves.size() * 2);
    }
  }
}

void ModelBatch::allow(Call& call, const Matrix& matrix, bool is_writable, std::int64_t begin, std::int64_t end) const {
  for (std::int64_t r = 0; begin < end && r < rows(); ++r)
    call.launch.memory.push_back({matrix.base + (row_offset(r) + begin) * element_size(),
                                  static_cast<std::size_t>((end - begin) * element_size()), is_writable});
}

void ModelBatch::begin(Call& call, bilogp::kernel::RowOptions& options) {
  options.inner_rows = shape_.inner_rows == 0 ? rows() : shape_.inner_rows;
  options.vocab_size = vocab_size();
  options.ignore_index = -100;
  options.temperature = shape_.temperature;
  std::fill(std::begin(call.errors), std::end(call.errors), 0);
  options.errors = reinterpret_cast<bilogp::kernel::i64*>(call.errors);
  call.ids.clear();
  call.upstream.clear();
  call.temperatures.clear();
  call.state.clear();
  for (const Row& row : rows_) {
    for (const std::int64_t id : row.ids) {
      const auto narrow = static_cast<std::int32_t>(id);
      const char* bytes = shape_.build == Build::narrow_ids ? reinterpret_cast<const char*>(&narrow)
                                                            : reinterpret_cast<const char*>(&id);
      call.ids.insert(call.ids.end(), bytes, bytes + (shape_.build == Build::narrow_ids ? 4 : 8));
    }
    call.upstream.push_back(row.upstream);
    call.temperatures.push_back(row.temperature);
    call.state.push_back(static_cast<std::int32_t>(row.answer.state.m_bits));
    call.state.push_back(row.answer.state.E);
  }
  if (shape_.row_temperatures) {
    options.temperature_rows = call.temperatures.data();
    options.temperature_strides = strides(1);
  }
  call.launch.memory = {{call.errors, sizeof call.errors, true},
                        {call.ids.data(), call.ids.size(), false},
                        {call.upstream.data(), call.upstream.size() * 4, false},
                        {call.temperatures.data(), call.temperatures.size() * 4, false},
                        {call.state.data(), call.state.size() * 4, false}};
}

std::string ModelBatch::run(Call& call, std::int64_t pieces, Cut cut, const std::function<void()>& thread) {
  call.launch.blocks = cut.blocks == 0 ? pieces : cut.blocks;
  call.launch.threads = 32 * kernels(shape_.storage, shape_.build).warps;
  call.launch.seed = shape_.seed * 1000 + launches_++;
  return gpu_model::run(call.launch, thread);
}

std::string ModelBatch::compare(const std::string& what, const Answers& answers) const {
  std::vector<std::uint32_t> logp;
  std::vector<std::uint32_t> lse;
  std::vector<reference::Node> states;
  std::int64_t bad = 0;
  std::int64_t first_row = 0;
  std::int64_t first_id = 0;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    logp.insert(logp.end(), rows_[r].answer.logp.begin(), rows_[r].answer.logp.end());
    lse.push_back(rows_[r].answer.lse);
    states.push_back(rows_[r].answer.state);
    for (const std::int64_t id : rows_[r].ids) {
      if (id == -100 || (id >= 0 && id < vocab_size())) continue;
      if (bad++ != 0) continue;
      first_row = static_cast<std::int64_t>(r);
      first_id = id;
    }
  }
  const auto a = reference::compare_bits(answers.logp, logp, static_cast<std::size_t>(shape_.ids_per_row));
  const auto b = reference::compare_bits(answers.lse, lse);
  const std::string c = compare_states(answers.state, states);
  if (!a.none() || !b.none() || !c.empty())
    return fmt::format("{}: logp: {}; lse: {}; {}", what, a.report, b.report, c);
  if (answers.errors[0] != bad || answers.errors[1] != first_row || answers.errors[2] != first_id ||
      answers.errors[3] != 0)
    return fmt::format("{}: error words {} {} {} {}, expected {} {} {} 0", what, answers.errors[0], answers.errors[1],
                       answers.errors[2], answers.errors[3], bad, first_row, first_id);
  return {};
}

std::string ModelBatch::compare_gradient(const std::string& what, const Matrix& gradient) const {
  const std::int64_t size = element_size();
  for (std::int64_t r = 0; r < rows(); ++r) {
    const Row& row = rows_[static_cast<std::size_t>(r)];
    const char* got = gradient.base + row_offset(r) * size;
    // The payload of a NaN that comes from the caller's own gradient is open.
    const bool open_payload = !std::isfinite(row.upstream);
    for (std::int64_t j = 0; j < shape_.columns; ++j) {
      const std::uint32_t right = reference::narrow(shape_.storage, row.gradient[static_cast<std::size_t>(j)]);
      const std::uint32_t bits = stored_bits(got + j * size, size);
      if (bits == right) continue;
      if (open_payload && reference::detail::is_nan(reference::widen(shape_.storage, &bits)) &&
          reference::detail::is_nan(reference::widen(shape_.storage, &right)))
        continue;
      return fmt::format("{}: row {} column {} is {:#x}, expected {:#x}", what, r, j, bits, right);
    }
  }
  return {};
}

std::string ModelBatch::check_everything(const std::vector<std::int64_t>& cuts, Cut cut) {
  std::string difference = check_forward(cut);
  if (shape_.ids_per_row != 1) return difference;
  for (const bool in_place : {false, true}) {
    if (difference.empty()) difference = check_backward(in_place, cut);
    if (difference.empty()) difference = check_with_gradient(in_place, cut);
  }
  if (difference.empty()) difference = check_shards(cuts, cut);
  if (difference.empty()) difference = check_backward_shards(cuts, cut);
  return difference;
}

std::string describe(const BatchShape& shape) {
  return fmt::format("{} columns={} rows={} seed={} ids_per_row={} build={} offset={} padding={} inner_rows={} "
                     "vocab_size={} temperature={} row_temperatures={} ignored_of_8={}",
                     reference::to_string(shape.storage), shape.columns, shape.rows, shape.seed, shape.ids_per_row,
                     static_cast<int>(shape.build), shape.offset, shape.row_padding, shape.inner_rows, shape.vocab_size,
                     shape.temperature, shape.row_temperatures, shape.ignored_of_8);
}

std::string check_shape(const BatchShape& shape, const std::vector<std::int64_t>& cuts, Cut cut) {
  ModelBatch batch(shape);
  const std::string difference = batch.check_everything(cuts, cut);
  if (difference.empty()) return {};
  return fmt::format("{} cuts={} blocks={} columns_per_block={}: {}", describe(shape), fmt::join(cuts, ","), cut.blocks,
                     cut.columns_per_block, difference);
}

} // namespace gpu_model
