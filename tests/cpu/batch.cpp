#include "tests/cpu/batch.hpp"

#include <atomic>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "tests/cpu/batch_bits.hpp"
#include "tests/reference/compare.hpp"
#include "tests/reference/row_generators.hpp"

namespace bilogp::test {
namespace {

void put(char* at, Storage storage, std::uint32_t bits) {
  if (storage == Storage::float32) {
    std::memcpy(at, &bits, 4);
    return;
  }
  const std::uint16_t half = reference::to_16_bits(storage, std::span(&bits, 1)).front();
  std::memcpy(at, &half, 2);
}

} // namespace

DType dtype_of(Storage storage) {
  switch (storage) {
  case Storage::float16:
    return DType::float16;
  case Storage::bfloat16:
    return DType::bfloat16;
  default:
    return DType::float32;
  }
}

Calls& straight_calls() {
  static Calls calls;
  return calls;
}

Batch::Batch(Storage storage, std::int64_t columns, Layout layout)
    : storage_(storage), columns_(columns), layout_(layout) {}

void Batch::add(std::vector<std::uint32_t> row, std::vector<std::int64_t> target_ids, float grad_logp) {
  rows_.push_back({std::move(row), std::move(target_ids), grad_logp, false, {}, {}});
}

TensorView Batch::logits(std::vector<char>& memory) const {
  const std::int64_t stride = columns_ + layout_.row_padding;
  const std::int64_t size = bytes_of(storage_);
  memory.assign(static_cast<std::size_t>(rows() * stride * size + layout_.misalignment), char(0x7f)); // padding is NaN
  char* base = memory.data() + layout_.misalignment;
  for (std::int64_t r = 0; r < rows(); ++r)
    for (std::int64_t j = 0; j < columns_; ++j)
      put(base + (r * stride + j) * size, storage_,
          rows_[static_cast<std::size_t>(r)].logits[static_cast<std::size_t>(j)]);
  return TensorView::strided(base, dtype_of(storage_), {rows(), columns_}, {stride, 1});
}

TensorView Batch::ids(std::vector<char>& memory) const {
  const auto per_row = static_cast<std::int64_t>(rows_.front().target_ids.size());
  const std::int64_t size = size_of(id_dtype);
  memory.assign(static_cast<std::size_t>(rows() * per_row * size), 0);
  std::int64_t at = 0;
  for (const Row& row : rows_)
    for (const std::int64_t id : row.target_ids) {
      const auto narrow = static_cast<std::int32_t>(id);
      std::memcpy(memory.data() + at++ * size, id_dtype == DType::int64 ? static_cast<const void*>(&id) : &narrow,
                  static_cast<std::size_t>(size));
    }
  if (per_row == 1) return TensorView::contiguous(memory.data(), id_dtype, {rows()});
  return TensorView::contiguous(memory.data(), id_dtype, {rows(), per_row});
}

reference::RowOptions Batch::reference_options(std::int64_t row) const {
  reference::RowOptions result;
  result.vocab_size = options.vocab_size;
  result.ignore_index = options.ignore_index;
  result.temperature =
      temperatures.empty() ? static_cast<float>(options.temperature) : temperatures[static_cast<std::size_t>(row)];
  return result;
}

LogpOptions Batch::call_options() {
  LogpOptions result = options;
  result.validate = Validate::off;
  if (!temperatures.empty())
    result.temperature_per_row = TensorView::contiguous(temperatures.data(), DType::float32, {rows()});
  return result;
}

const reference::RowAnswer& Batch::expected(std::int64_t index) {
  Row& row = rows_[static_cast<std::size_t>(index)];
  if (!row.is_scored) {
    row.answer = reference::score(row.logits, row.target_ids, reference_options(index));
    row.is_scored = true;
  }
  return row.answer;
}

const std::vector<std::uint32_t>& Batch::expected_gradient(std::int64_t index) {
  Row& row = rows_[static_cast<std::size_t>(index)];
  if (row.gradient.empty())
    row.gradient = reference::gradient(row.logits, row.target_ids.front(), row.grad_logp, reference_options(index));
  return row.gradient;
}

void Batch::score_all(int threads) {
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t row = next++; row < rows(); row = next++) {
      static_cast<void>(expected(row));
      if (ids_per_row() == 1) static_cast<void>(expected_gradient(row));
    }
  };
  std::vector<std::thread> workers;
  for (int i = 1; i < threads; ++i) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
}

std::string Batch::compare(const std::string& what, const std::vector<std::uint32_t>& logp,
                           const std::vector<std::uint32_t>& lse, const std::vector<std::int32_t>& state) {
  std::vector<std::uint32_t> expected_logp;
  std::vector<std::uint32_t> expected_lse;
  std::string states;
  for (std::int64_t r = 0; r < rows(); ++r) {
    const reference::RowAnswer& answer = expected(r);
    expected_logp.insert(expected_logp.end(), answer.logp.begin(), answer.logp.end());
    expected_lse.push_back(answer.lse);
    const auto at = static_cast<std::size_t>(2 * r);
    const reference::Node got{static_cast<std::uint32_t>(state[at]), state[at + 1]};
    if (got != answer.state && states.empty())
      states =
          fmt::format("row {} state {} expected {}", r, reference::to_string(got), reference::to_string(answer.state));
  }
  const reference::BitDifference a = reference::compare_bits(logp, expected_logp, rows_.front().target_ids.size());
  const reference::BitDifference b = reference::compare_bits(lse, expected_lse);
  if (a.none() && b.none() && states.empty()) return {};
  return fmt::format("{} {}, {} columns: logp: {}; lse: {}; {}", what, reference::to_string(storage_), columns_,
                     a.report, b.report, states);
}

void Batch::prepare(ForwardCall& call) {
  const std::size_t per_row = rows_.front().target_ids.size();
  const auto n = static_cast<std::size_t>(rows());
  call.logp.assign(n * per_row, untouched);
  call.lse.assign(n, untouched);
  call.state.assign(2 * n, -7);
  LogpArgs& args = call.args;
  args.logits = logits(call.logits);
  args.target_ids = ids(call.ids);
  args.logp = args.target_ids;
  args.logp.data = call.logp.data();
  args.logp.dtype = DType::float32;
  args.lse = TensorView::contiguous(call.lse.data(), DType::float32, {rows()});
  args.row_state = TensorView::contiguous(call.state.data(), DType::int32, {rows(), 2});
  args.options = call_options();
}

std::string Batch::compare(const std::string& what, const ForwardCall& call) {
  return compare(what, float_bits(call.logp), float_bits(call.lse), call.state);
}

std::string Batch::check_forward(Runtime& runtime) {
  ForwardCall call;
  prepare(call);
  const std::vector<char> given = call.logits;
  calls->logp(runtime, call.args);
  const std::string difference = compare("forward", call);
  return difference.empty() ? compare_logits("forward", given, call.logits) : difference;
}

} // namespace bilogp::test
