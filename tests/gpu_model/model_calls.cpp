// The launches of ModelBatch, one per operator.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "tests/gpu_model/model_batch.hpp"

namespace gpu_model {
namespace {

namespace kernel = bilogp::kernel;

constexpr std::int64_t usual_gradient_columns = 8192;

kernel::GpuPlan plan_of(std::int64_t rows) {
  kernel::GpuPlan plan{};
  plan.rows = rows;
  plan.blocks_per_row = 1;
  return plan;
}

std::vector<std::int64_t> bounds_of(const std::vector<std::int64_t>& cuts, std::int64_t columns) {
  std::vector<std::int64_t> bounds = cuts;
  bounds.insert(bounds.begin(), 0);
  bounds.push_back(columns);
  return bounds;
}

std::int64_t node_count(std::int64_t begin, std::int64_t end, std::int64_t full_vocab) {
  return std::ssize(reference::shard_nodes(std::vector<std::uint32_t>(static_cast<std::size_t>(end - begin)), begin,
                                           end, full_vocab, {}));
}

} // namespace

template<class T> void ModelBatch::allow(Call& call, const std::vector<T>& values, bool is_writable) const {
  call.launch.memory.push_back({values.data(), values.size() * sizeof(T), is_writable});
}

std::string ModelBatch::forward(Cut cut, Answers& answers) {
  Call call;
  Matrix logits;
  fill(logits);
  kernel::LogpForwardArguments a{};
  begin(call, a.options);
  const std::int64_t k = shape_.ids_per_row;
  answers.logp.assign(static_cast<std::size_t>(rows() * k), 7);
  answers.lse.assign(static_cast<std::size_t>(rows()), 7);
  answers.state.assign(static_cast<std::size_t>(2 * rows()), -7);
  a.logits = logits.base;
  a.logits_strides = matrix_strides();
  a.target_ids = call.ids.data();
  a.id_strides = strides(k);
  a.id_stride_k = 1;
  a.ids_per_row = k;
  a.logp = reinterpret_cast<float*>(answers.logp.data());
  a.logp_strides = strides(k);
  a.logp_stride_k = 1;
  a.lse = reinterpret_cast<float*>(answers.lse.data());
  a.lse_strides = strides(1);
  a.row_state = answers.state.data();
  a.row_state_strides = strides(2);
  allow(call, logits, false, 0, vocab_size());
  allow(call, answers.logp, true);
  allow(call, answers.lse, true);
  allow(call, answers.state, true);
  std::string error = launch(call, a, cut);
  std::copy(std::begin(call.errors), std::end(call.errors), answers.errors);
  return error;
}

std::string ModelBatch::launch(Call& call, const kernel::LogpForwardArguments& a, Cut cut) {
  kernel::GpuPlan plan = plan_of(rows());
  std::vector<std::int32_t> nodes;
  std::vector<std::uint32_t> tickets(static_cast<std::size_t>(rows()), 0);
  if (cut.columns_per_block > 0) {
    plan.columns_per_block = static_cast<int>(cut.columns_per_block);
    plan.blocks_per_row = static_cast<int>((vocab_size() + cut.columns_per_block - 1) / cut.columns_per_block);
    nodes.assign(static_cast<std::size_t>(2 * rows() * plan.blocks_per_row), -7);
    plan.nodes = nodes.data();
    plan.tickets = tickets.data();
  }
  allow(call, nodes, true);
  allow(call, tickets, true);
  const auto entry = kernels(shape_.storage, shape_.build).forward;
  std::string error = run(call, rows() * plan.blocks_per_row, cut, [&] { entry(a, plan); });
  if (error.empty() && std::any_of(tickets.begin(), tickets.end(), [](std::uint32_t t) { return t != 0; }))
    return "a row's ticket is not zero after the launch";
  return error;
}

std::string ModelBatch::check_forward(Cut cut) {
  Answers answers;
  const std::string error = forward(cut, answers);
  return error.empty() ? compare("forward", answers) : "forward: " + error;
}

kernel::LogpBackwardArguments ModelBatch::backward_arguments(Call& call, const Matrix& logits, const Matrix& gradient) {
  kernel::LogpBackwardArguments a{};
  begin(call, a.options);
  a.logits = logits.base;
  a.logits_strides = matrix_strides();
  a.grad_logits = gradient.base;
  a.grad_strides = matrix_strides();
  a.target_ids = call.ids.data();
  a.id_strides = strides(1);
  a.row_state = call.state.data();
  a.row_state_strides = strides(2);
  a.grad_logp = call.upstream.data();
  a.grad_logp_strides = strides(1);
  a.column_end = shape_.columns;
  return a;
}

std::string ModelBatch::check_backward(bool in_place, Cut cut) {
  return check_backward_shards(in_place ? std::vector<std::int64_t>{-1} : std::vector<std::int64_t>{}, cut);
}

// cuts {-1}: no cut, in place.
std::string ModelBatch::check_backward_shards(const std::vector<std::int64_t>& cuts, Cut cut) {
  Call call;
  Matrix logits;
  Matrix gradient;
  fill(logits);
  const bool in_place = cuts.size() == 1 && cuts.front() == -1;
  // A gradient with another alignment than the logits, now and then.
  const BatchShape kept = shape_;
  if (shape_.seed % 3 == 0) shape_.offset += static_cast<std::int64_t>(shape_.seed % 7);
  fill(gradient);
  shape_ = kept;
  Matrix& out = in_place ? logits : gradient;
  const std::vector<std::int64_t> bounds = bounds_of(in_place ? std::vector<std::int64_t>{} : cuts, shape_.columns);
  for (std::size_t s = 0; s + 1 < bounds.size(); ++s) {
    kernel::LogpBackwardArguments a = backward_arguments(call, logits, out);
    a.column_origin = bounds[s];
    a.column_begin = bounds[s];
    a.column_end = bounds[s + 1];
    a.logits = logits.base + bounds[s] * element_size();
    a.grad_logits = out.base + bounds[s] * element_size();
    kernel::GpuPlan plan = plan_of(rows());
    const std::int64_t width = bounds[s + 1] - bounds[s];
    plan.columns_per_block =
        static_cast<int>(cut.columns_per_block > 0 ? cut.columns_per_block : usual_gradient_columns);
    plan.blocks_per_row = static_cast<int>((width + plan.columns_per_block - 1) / plan.columns_per_block);
    allow(call, logits, false, bounds[s], std::min(bounds[s + 1], vocab_size()));
    allow(call, out, true, bounds[s], bounds[s + 1]);
    const auto entry = kernels(shape_.storage, shape_.build).backward;
    const std::string error = run(call, rows() * plan.blocks_per_row, cut, [&] { entry(a, plan); });
    if (!error.empty()) return "backward: " + error;
  }
  return compare_gradient(in_place ? "backward in place" : fmt::format("backward of {} shards", bounds.size() - 1),
                          out);
}

std::string ModelBatch::check_with_gradient(bool in_place, Cut cut) {
  Call call;
  Matrix logits;
  Matrix gradient;
  fill(logits);
  fill(gradient);
  Matrix& out = in_place ? logits : gradient;
  kernel::LogpGradientArguments a{};
  begin(call, a.options);
  Answers answers;
  answers.logp.assign(static_cast<std::size_t>(rows()), 7);
  answers.lse.assign(static_cast<std::size_t>(rows()), 7);
  answers.state.assign(static_cast<std::size_t>(2 * rows()), -7);
  a.logits = logits.base;
  a.logits_strides = matrix_strides();
  a.grad_logits = out.base;
  a.grad_strides = matrix_strides();
  a.target_ids = call.ids.data();
  a.id_strides = strides(1);
  a.ids_per_row = 1;
  a.grad_logp = call.upstream.data();
  a.grad_logp_strides = strides(1);
  a.logp = reinterpret_cast<float*>(answers.logp.data());
  a.logp_strides = strides(1);
  a.lse = reinterpret_cast<float*>(answers.lse.data());
  a.lse_strides = strides(1);
  a.row_state = answers.state.data();
  a.row_state_strides = strides(2);
  a.columns = shape_.columns;
  allow(call, logits, false, 0, vocab_size());
  allow(call, out, true, 0, shape_.columns);
  allow(call, answers.logp, true);
  allow(call, answers.lse, true);
  allow(call, answers.state, true);
  const std::string error = launch(call, a, cut);
  if (!error.empty()) return "with gradient: " + error;
  std::copy(std::begin(call.errors), std::end(call.errors), answers.errors);
  const std::string what = in_place ? "with gradient in place" : "with gradient";
  const std::string difference = compare(what, answers);
  return difference.empty() ? compare_gradient(what, out) : difference;
}

std::string ModelBatch::launch(Call& call, const kernel::LogpGradientArguments& a, Cut cut) {
  const auto entry = kernels(shape_.storage, shape_.build).with_gradient;
  const kernel::GpuPlan plan = plan_of(rows());
  return run(call, rows(), cut, [&] { entry(a, plan); });
}

std::string ModelBatch::shards(const std::vector<std::int64_t>& cuts, Cut cut, Answers& answers) {
  Call call;
  Matrix logits;
  fill(logits);
  const std::vector<std::int64_t> bounds = bounds_of(cuts, shape_.columns);
  std::vector<float> best(static_cast<std::size_t>(rows()), -std::numeric_limits<float>::infinity());
  std::vector<std::vector<std::int32_t>> nodes(bounds.size() - 1);
  kernel::GpuShards shards{};
  kernel::LogpFinishArguments finish{};
  for (std::size_t s = 0; s + 1 < bounds.size(); ++s) {
    kernel::LogpPartialArguments a{};
    begin(call, a.options);
    a.logits = logits.base + bounds[s] * element_size();
    a.logits_strides = matrix_strides();
    a.target_ids = call.ids.data();
    a.id_strides = strides(1);
    a.shard_begin = bounds[s];
    a.shard_end = bounds[s + 1];
    a.full_vocab = shape_.columns;
    const std::int64_t count = node_count(bounds[s], bounds[s + 1], shape_.columns);
    nodes[s].assign(static_cast<std::size_t>(2 * rows() * count), -7);
    a.nodes = nodes[s].data();
    a.node_strides = strides(2 * count);
    a.node_stride_k = 2;
    std::vector<float> target_logit(static_cast<std::size_t>(rows()), 7);
    a.target_logit = target_logit.data();
    a.target_logit_strides = strides(1);
    allow(call, logits, false, bounds[s], std::min(bounds[s + 1], vocab_size()));
    allow(call, nodes[s], true);
    allow(call, target_logit, true);
    const auto entry = kernels(shape_.storage, shape_.build).partial;
    const kernel::GpuPlan plan = plan_of(rows());
    const std::string error = run(call, rows(), cut, [&] { entry(a, plan); });
    if (!error.empty()) return "partial: " + error;
    for (std::size_t r = 0; r < best.size(); ++r)
      if (!(target_logit[r] <= best[r])) best[r] = target_logit[r];
    shards.shards[s] = {nodes[s].data(), a.node_strides, 2, bounds[s], bounds[s + 1]};
  }
  begin(call, finish.options);
  answers.logp.assign(static_cast<std::size_t>(rows()), 7);
  answers.lse.assign(static_cast<std::size_t>(rows()), 7);
  answers.state.assign(static_cast<std::size_t>(2 * rows()), -7);
  finish.shard_count = std::ssize(bounds) - 1;
  finish.full_vocab = shape_.columns;
  finish.target_ids = call.ids.data();
  finish.id_strides = strides(1);
  finish.ids_per_row = 1;
  finish.target_logit = best.data();
  finish.target_logit_strides = strides(1);
  finish.logp = reinterpret_cast<float*>(answers.logp.data());
  finish.logp_strides = strides(1);
  finish.lse = reinterpret_cast<float*>(answers.lse.data());
  finish.lse_strides = strides(1);
  finish.row_state = answers.state.data();
  finish.row_state_strides = strides(2);
  for (const std::vector<std::int32_t>& list : nodes) allow(call, list, false);
  allow(call, best, false);
  allow(call, answers.logp, true);
  allow(call, answers.lse, true);
  allow(call, answers.state, true);
  const auto entry = kernels(shape_.storage, shape_.build).finish;
  const kernel::GpuPlan plan = plan_of(rows());
  const std::string error = run(call, (rows() + 2) / 3, cut, [&] { entry(finish, plan, shards); });
  std::copy(std::begin(call.errors), std::end(call.errors), answers.errors);
  return error.empty() ? error : "finish: " + error;
}

std::string ModelBatch::check_shards(const std::vector<std::int64_t>& cuts, Cut cut) {
  Answers answers;
  const std::string error = shards(cuts, cut, answers);
  return error.empty() ? compare(fmt::format("{} shards", cuts.size() + 1), answers) : error;
}

} // namespace gpu_model
