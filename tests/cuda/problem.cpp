#include "tests/cuda/problem.hpp"

#include <cstring>

#include <fmt/format.h>

#include "tests/cpu/batch_bits.hpp"
#include "tests/reference/row_generators.hpp"

namespace cuda_test {
namespace {

constexpr std::uint32_t junk = 0x4640e400; // 12345
constexpr float upstream_gradient = 0.3F;

Batch ordinary_batch(const Mix& mix) {
  Batch batch(mix.storage, mix.columns);
  for (std::int64_t row = 0; row < mix.rows; ++row) {
    auto logits = bilogp::reference::make_row(bilogp::reference::RowKind::normal_5, mix.columns, mix.storage,
                                              mix.seed * 100 + static_cast<std::uint64_t>(row));
    batch.add(std::move(logits), {(row * 977 + 5) % mix.columns}, upstream_gradient);
    if (mix.temperatures != bilogp::test::Temperatures::scalar)
      batch.temperatures.push_back(0.5F + 0.25F * static_cast<float>(row % 7));
  }
  batch.score_all(test_threads());
  return batch;
}

} // namespace

Problem::Problem(const Device& device, const Mix& mix)
    : batch_(ordinary_batch(mix)), storage_(mix.storage), columns_(mix.columns) {
  const auto n = static_cast<std::size_t>(mix.rows);
  logits_ = std::make_unique<DeviceTensor>(device, batch_.logits(logits_bytes_));
  ids_ = std::make_unique<DeviceTensor>(device, batch_.ids(id_bytes_));
  TensorView grad = batch_.logits(grad_bytes_);
  grad_ = std::make_unique<DeviceTensor>(device, grad);
  logp_.resize(n);
  lse_.resize(n);
  state_.resize(2 * n);
  upstream_.assign(n, upstream_gradient);
  logp_there_ =
      std::make_unique<DeviceTensor>(device, TensorView::contiguous(logp_.data(), DType::float32, {mix.rows}));
  lse_there_ = std::make_unique<DeviceTensor>(device, TensorView::contiguous(lse_.data(), DType::float32, {mix.rows}));
  state_there_ =
      std::make_unique<DeviceTensor>(device, TensorView::contiguous(state_.data(), DType::int32, {mix.rows, 2}));
  if (!batch_.temperatures.empty())
    temperatures_ = std::make_unique<DeviceTensor>(
        device, TensorView::contiguous(batch_.temperatures.data(), DType::float32, {mix.rows}));
  upstream_there_ =
      std::make_unique<DeviceTensor>(device, TensorView::contiguous(upstream_.data(), DType::float32, {mix.rows}));
}

bilogp::LogpBackwardArgs Problem::backward(void* stream, int plan) {
  const bilogp::LogpArgs scores = forward(stream, plan);
  bilogp::LogpBackwardArgs args;
  args.logits = scores.logits;
  args.target_ids = scores.target_ids;
  args.row_state = scores.row_state;
  args.grad_logp = upstream_there_->view();
  args.grad_logits = grad_->view();
  args.options = scores.options;
  args.stream = stream;
  return args;
}

bilogp::LogpArgs Problem::forward(void* stream, int plan) {
  bilogp::LogpArgs args;
  args.logits = logits_->view();
  args.target_ids = ids_->view();
  args.logp = logp_there_->view();
  args.lse = lse_there_->view();
  args.row_state = state_there_->view();
  args.options.plan = plan;
  if (temperatures_) args.options.temperature_per_row = temperatures_->view();
  args.stream = stream;
  return args;
}

bilogp::LogpGradientArgs Problem::with_gradient(void* stream, int plan) {
  const bilogp::LogpArgs scores = forward(stream, plan);
  bilogp::LogpGradientArgs args;
  args.logits = scores.logits;
  args.target_ids = scores.target_ids;
  args.grad_logp = upstream_there_->view();
  args.logp = scores.logp;
  args.lse = scores.lse;
  args.row_state = scores.row_state;
  args.grad_logits = grad_->view();
  args.options = scores.options;
  args.stream = stream;
  return args;
}

void Problem::clear() {
  for (DeviceTensor* output : {logp_there_.get(), lse_there_.get(), state_there_.get(), grad_.get()})
    output->overwrite(junk);
}

void Problem::clear_gradient() {
  grad_->overwrite(junk);
}

std::string Problem::check_scores() {
  for (DeviceTensor* output : {logp_there_.get(), lse_there_.get(), state_there_.get()})
    if (std::string said = output->bring_back(); !said.empty()) return said;
  for (std::int64_t row = 0; row < rows(); ++row) {
    const auto at = static_cast<std::size_t>(row);
    const bilogp::reference::RowAnswer& right = batch_.expected(row);
    if (logp_[at] != right.logp.front() || lse_[at] != right.lse ||
        static_cast<std::uint32_t>(state_[2 * at]) != right.state.m_bits || state_[2 * at + 1] != right.state.E)
      return fmt::format("row {}: logp {:#x} expected {:#x}, lse {:#x} expected {:#x}", row, logp_[at],
                         right.logp.front(), lse_[at], right.lse);
  }
  return {};
}

std::vector<std::uint32_t> Problem::scores() const {
  std::vector<std::uint32_t> bits = logp_;
  bits.insert(bits.end(), lse_.begin(), lse_.end());
  for (const std::int32_t word : state_) bits.push_back(static_cast<std::uint32_t>(word));
  return bits;
}

std::string Problem::check_gradient() {
  if (std::string said = grad_->bring_back(); !said.empty()) return said;
  const std::int64_t size = bilogp::test::bytes_of(storage_);
  for (std::int64_t row = 0; row < rows(); ++row) {
    const std::vector<std::uint32_t>& right = batch_.expected_gradient(row);
    for (std::int64_t j = 0; j < columns_; ++j) {
      const std::uint32_t got = bilogp::test::stored_bits(grad_bytes_.data() + (row * columns_ + j) * size, storage_);
      const std::uint32_t expected = bilogp::reference::narrow(storage_, right[static_cast<std::size_t>(j)]);
      if (got != expected)
        return fmt::format("gradient of row {} column {}: {:#x}, expected {:#x}", row, j, got, expected);
    }
  }
  return {};
}

} // namespace cuda_test
