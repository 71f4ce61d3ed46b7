// Calls of a runtime on tensors in host memory: where the runtime is a GPU's, they are copied there and the results
// back, each in its own layout. Device memory is kept from call to call.
//
// Thread-safety: one thread at a time per object.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "bilogp/runtime.hpp"

namespace bilogp::score {

class DeviceCall {
public:
  explicit DeviceCall(const Runtime& runtime);
  ~DeviceCall();
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;

  // The tensor as the call is to have it. Memory that was named before, as an output too, is not copied again.
  TensorView in(const TensorView& host);
  TensorView out(const TensorView& host);
  // Waits for copies and kernels.
  void wait();
  // Brings the outputs back and forgets the tensors.
  void fetch();

private:
  struct State;
  std::unique_ptr<State> state_; // null on a CPU
};

} // namespace bilogp::score
