#include "tests/cuda/device_calls.hpp"

namespace cuda_test {

TensorView DeviceCalls::there(const TensorView& host) {
  if (!host.present()) return host;
  for (const DeviceTensor& tensor : tensors_)
    if (tensor.holds(host)) return tensor.view();
  return tensors_.emplace_back(device_, host).view();
}

bilogp::LogpOptions DeviceCalls::there(bilogp::LogpOptions options) {
  options.temperature_per_row = there(options.temperature_per_row);
  options.plan = plan;
  return options;
}

void DeviceCalls::bring_back() {
  wait_for(device_, stream_);
  complaint.clear();
  for (DeviceTensor& tensor : tensors_)
    if (const std::string said = tensor.bring_back(); complaint.empty()) complaint = said;
  tensors_.clear();
  if (!complaint.empty()) throw bilogp::Error(bilogp::ErrorKind::device, complaint);
}

void DeviceCalls::logp(bilogp::Runtime& runtime, const bilogp::LogpArgs& args) {
  runtime.logp({there(args.logits), there(args.target_ids), there(args.logp), there(args.lse), there(args.row_state),
                there(args.options), stream_});
  bring_back();
}

void DeviceCalls::logp_backward(bilogp::Runtime& runtime, const bilogp::LogpBackwardArgs& args) {
  bilogp::LogpBackwardArgs own = args;
  for (TensorView* view : {&own.logits, &own.target_ids, &own.row_state, &own.grad_logp, &own.grad_logits})
    *view = there(*view);
  own.options = there(args.options);
  own.stream = stream_;
  runtime.logp_backward(own);
  bring_back();
}

void DeviceCalls::logp_with_gradient(bilogp::Runtime& runtime, const bilogp::LogpGradientArgs& args) {
  bilogp::LogpGradientArgs own = args;
  for (TensorView* view :
       {&own.logits, &own.target_ids, &own.grad_logp, &own.logp, &own.lse, &own.row_state, &own.grad_logits})
    *view = there(*view);
  own.options = there(args.options);
  own.stream = stream_;
  runtime.logp_with_gradient(own);
  bring_back();
}

void DeviceCalls::logp_partial(bilogp::Runtime& runtime, const bilogp::LogpPartialArgs& args) {
  bilogp::LogpPartialArgs own = args;
  for (TensorView* view : {&own.logits, &own.target_ids, &own.nodes, &own.target_logit}) *view = there(*view);
  own.options = there(args.options);
  own.stream = stream_;
  runtime.logp_partial(own);
  bring_back();
}

void DeviceCalls::logp_finish(bilogp::Runtime& runtime, const bilogp::LogpFinishArgs& args) {
  bilogp::LogpFinishArgs own = args;
  for (TensorView* view : {&own.target_ids, &own.target_logit, &own.logp, &own.lse, &own.row_state})
    *view = there(*view);
  std::vector<bilogp::ShardNodes> shards(args.shards.begin(), args.shards.end());
  for (bilogp::ShardNodes& shard : shards) shard.nodes = there(shard.nodes);
  own.shards = shards;
  own.options = there(args.options);
  own.stream = stream_;
  runtime.logp_finish(own);
  bring_back();
}

} // namespace cuda_test
