// The backward pass, of whole rows and of shards.
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "tests/cpu/batch.hpp"
#include "tests/cpu/batch_bits.hpp"
#include "tests/reference/compare.hpp"
#include "tests/reference/row_generators.hpp"

namespace bilogp::test {

struct Batch::BackwardCall {
  std::vector<char> logits;
  std::vector<char> ids;
  std::vector<char> gradient;
  std::vector<std::int32_t> state;
  std::vector<float> upstream;
  LogpBackwardArgs args;
};

void Batch::prepare(BackwardCall& call) {
  for (std::int64_t r = 0; r < rows(); ++r) {
    const reference::Node& node = expected(r).state;
    call.state.push_back(static_cast<std::int32_t>(node.m_bits));
    call.state.push_back(node.E);
    call.upstream.push_back(rows_[static_cast<std::size_t>(r)].grad_logp);
  }
  LogpBackwardArgs& args = call.args;
  args.logits = logits(call.logits);
  call.gradient = call.logits;
  args.grad_logits = args.logits;
  args.grad_logits.data = call.gradient.data() + layout_.misalignment;
  args.target_ids = ids(call.ids);
  args.row_state = TensorView::contiguous(call.state.data(), DType::int32, {rows(), 2});
  args.grad_logp = TensorView::contiguous(call.upstream.data(), DType::float32, {rows()});
  args.options = call_options();
}

std::string Batch::compare_gradient(const std::string& what, const char* got) {
  const std::int64_t size = bytes_of(storage_);
  const std::int64_t stride = (columns_ + layout_.row_padding) * size;
  for (std::int64_t r = 0; r < rows(); ++r) {
    const std::vector<std::uint32_t>& gradient = expected_gradient(r);
    // The payload of a NaN that comes from the caller's own gradient is open.
    const bool open_payload = !std::isfinite(rows_[static_cast<std::size_t>(r)].grad_logp);
    for (std::int64_t j = 0; j < columns_; ++j) {
      const std::uint32_t right = reference::narrow(storage_, gradient[static_cast<std::size_t>(j)]);
      const std::uint32_t bits = stored_bits(got + r * stride + j * size, storage_);
      if (bits == right) continue;
      if (open_payload && reference::detail::is_nan(reference::widen(storage_, &bits)) &&
          reference::detail::is_nan(reference::widen(storage_, &right)))
        continue;
      return fmt::format("{} {}, {} columns: row {} column {} is {:#x}, expected {:#x}", what,
                         reference::to_string(storage_), columns_, r, j, bits, right);
    }
    const char* padding = got + r * stride + columns_ * size;
    for (std::int64_t i = 0; r + 1 < rows() && i < layout_.row_padding * size; ++i)
      if (padding[i] != char(0x7f)) return fmt::format("{} wrote into the padding behind row {}", what, r);
  }
  return {};
}

std::string Batch::check_backward(Runtime& runtime, bool in_place) {
  BackwardCall call;
  prepare(call);
  if (in_place) call.args.grad_logits = call.args.logits;
  call.args.in_place = in_place;
  const std::vector<char> given = call.logits;
  calls->logp_backward(runtime, call.args);
  const std::string difference = compare_gradient(in_place ? "backward in place" : "backward",
                                                  static_cast<const char*>(call.args.grad_logits.data));
  return difference.empty() && !in_place ? compare_logits("backward", given, call.logits) : difference;
}

std::string Batch::check_with_gradient(Runtime& runtime, bool in_place) {
  ForwardCall forward;
  prepare(forward);
  BackwardCall backward;
  prepare(backward);
  LogpGradientArgs args;
  args.logits = in_place ? backward.args.grad_logits : forward.args.logits;
  args.target_ids = forward.args.target_ids;
  args.grad_logp = backward.args.grad_logp;
  args.logp = forward.args.logp;
  args.lse = forward.args.lse;
  args.row_state = forward.args.row_state;
  args.grad_logits = backward.args.grad_logits;
  args.in_place = in_place;
  args.options = forward.args.options;
  const std::vector<char> given = forward.logits;
  calls->logp_with_gradient(runtime, args);
  const std::string what = in_place ? "with gradient in place" : "with gradient";
  std::string difference = compare(what, forward);
  if (difference.empty()) difference = compare_gradient(what, static_cast<const char*>(args.grad_logits.data));
  if (!difference.empty() || in_place) return difference;
  // The same without what is optional.
  args.lse = args.row_state = {};
  calls->logp_with_gradient(runtime, args);
  difference = compare_gradient(what + " alone", static_cast<const char*>(args.grad_logits.data));
  return difference.empty() ? compare_logits(what, given, forward.logits) : difference;
}

std::string Batch::check_backward_shards(Runtime& runtime, const std::vector<std::int64_t>& cuts) {
  BackwardCall call;
  prepare(call);
  std::vector<std::int64_t> bounds = cuts;
  bounds.insert(bounds.begin(), 0);
  bounds.push_back(columns_);
  const std::vector<char> given = call.logits;
  for (std::size_t s = 0; s + 1 < bounds.size(); ++s) {
    LogpBackwardArgs shard = call.args;
    for (TensorView* view : {&shard.logits, &shard.grad_logits}) {
      view->data = static_cast<char*>(view->data) + bounds[s] * bytes_of(storage_);
      view->shape[1] = bounds[s + 1] - bounds[s];
    }
    shard.shard_begin = bounds[s];
    shard.full_vocab = columns_;
    calls->logp_backward(runtime, shard);
  }
  const std::string what = fmt::format("backward of {} shards", bounds.size() - 1);
  const std::string difference = compare_gradient(what, static_cast<const char*>(call.args.grad_logits.data));
  return difference.empty() ? compare_logits(what, given, call.logits) : difference;
}

} // namespace bilogp::test
