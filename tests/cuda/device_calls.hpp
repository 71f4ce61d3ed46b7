// A batch's calls on a device: every tensor is copied there and back, in its own layout.
#pragma once

#include <deque>
#include <string>

#include "tests/cpu/batch.hpp"
#include "tests/cuda/device_memory.hpp"

namespace cuda_test {

class DeviceCalls : public bilogp::test::Calls {
public:
  explicit DeviceCalls(const bilogp::Device& device, bilogp::cuda::Stream stream = nullptr)
      : device_(device), stream_(stream) {}

  int plan = -1;         // of all calls
  std::string complaint; // of guards, by the last call

  void logp(bilogp::Runtime& runtime, const bilogp::LogpArgs& args) override;
  void logp_backward(bilogp::Runtime& runtime, const bilogp::LogpBackwardArgs& args) override;
  void logp_with_gradient(bilogp::Runtime& runtime, const bilogp::LogpGradientArgs& args) override;
  void logp_partial(bilogp::Runtime& runtime, const bilogp::LogpPartialArgs& args) override;
  void logp_finish(bilogp::Runtime& runtime, const bilogp::LogpFinishArgs& args) override;

private:
  // The view of this memory on the device, copied there at its first mention in a call.
  TensorView there(const TensorView& host);
  bilogp::LogpOptions there(bilogp::LogpOptions options);
  void bring_back();

  bilogp::Device device_;
  bilogp::cuda::Stream stream_;
  std::deque<DeviceTensor> tensors_; // of the call in progress
};

// Every call on the next device in turn: a batch's shards land on different ones.
class TurnsOverDevices : public bilogp::test::Calls {
public:
  explicit TurnsOverDevices(const std::vector<bilogp::Device>& devices) {
    for (const bilogp::Device& device : devices) calls_.emplace_back(device);
  }
  void logp_partial(bilogp::Runtime& runtime, const bilogp::LogpPartialArgs& args) override {
    next().logp_partial(runtime, args);
  }
  void logp_finish(bilogp::Runtime& runtime, const bilogp::LogpFinishArgs& args) override {
    next().logp_finish(runtime, args);
  }

private:
  DeviceCalls& next() { return calls_[turn_++ % calls_.size()]; }

  std::deque<DeviceCalls> calls_;
  std::size_t turn_ = 0;
};

} // namespace cuda_test
