#include "tests/cpu/public_cases.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tests/reference/row_generators.hpp"

namespace bilogp::test {

void Rows::add(const std::vector<std::uint32_t>& row) {
  const auto append = [&](const auto& elements) {
    const char* at = reinterpret_cast<const char*>(elements.data());
    bytes.insert(bytes.end(), at, at + elements.size() * sizeof elements[0]);
  };
  if (storage == Storage::float32)
    append(row);
  else
    append(reference::to_16_bits(storage, row));
  ++rows;
}

TensorView Rows::view() const {
  return TensorView::contiguous(bytes.data(), dtype_of(storage), {rows, columns});
}

Scores score(Runtime& runtime, const TensorView& logits, const TensorView& ids, const LogpOptions& options) {
  const auto rows = static_cast<std::size_t>(logits.shape[0]);
  Scores scores;
  scores.logp.assign(static_cast<std::size_t>(ids.elements()), 0x12345678);
  scores.lse.assign(rows, 0x12345678);
  scores.state.assign(2 * rows, -7);
  LogpArgs args;
  args.logits = logits;
  args.target_ids = ids;
  args.logp = ids.rank == 2 ? TensorView::contiguous(scores.logp.data(), DType::float32, {ids.shape[0], ids.shape[1]})
                            : TensorView::contiguous(scores.logp.data(), DType::float32, {ids.shape[0]});
  args.lse = TensorView::contiguous(scores.lse.data(), DType::float32, {logits.shape[0]});
  args.row_state = TensorView::contiguous(scores.state.data(), DType::int32, {logits.shape[0], 2});
  args.options = options;
  runtime.logp(args);
  return scores;
}

Scores score(Runtime& runtime, const TensorView& logits, const std::vector<std::int64_t>& ids,
             const LogpOptions& options) {
  return score(runtime, logits, TensorView::contiguous(ids.data(), DType::int64, {logits.shape[0]}), options);
}

std::vector<char> gradient(Runtime& runtime, const TensorView& logits, const std::vector<std::int64_t>& ids,
                           const Scores& scores, const TensorView& upstream, const LogpOptions& options) {
  std::vector<char> bytes(static_cast<std::size_t>(logits.elements() * size_of(logits.dtype)), char(0x7f));
  LogpBackwardArgs args;
  args.logits = logits;
  args.target_ids = TensorView::contiguous(ids.data(), DType::int64, {logits.shape[0]});
  args.row_state = TensorView::contiguous(scores.state.data(), DType::int32, {logits.shape[0], 2});
  args.grad_logp = upstream;
  args.grad_logits = TensorView::contiguous(bytes.data(), logits.dtype, {logits.shape[0], logits.shape[1]});
  args.options = options;
  runtime.logp_backward(args);
  return bytes;
}

double logp_in_double(const std::vector<std::uint32_t>& row, std::int64_t target) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const std::uint32_t bits : row) largest = std::max(largest, static_cast<double>(std::bit_cast<float>(bits)));
  double sum = 0;
  for (const std::uint32_t bits : row) sum += std::exp(static_cast<double>(std::bit_cast<float>(bits)) - largest);
  const auto logit = static_cast<double>(std::bit_cast<float>(row[static_cast<std::size_t>(target)]));
  return logit - largest - std::log(sum);
}

} // namespace bilogp::test
