// What the driver says about a caller's pointers and streams.
#pragma once

#include <string_view>

#include "bilogp/tensor.hpp"
#include "runtime/backends/cuda/devices.hpp"

namespace bilogp::cuda {

// Throws Error(invalid_argument) unless kernels of this device can use the memory: its own, managed, or host memory
// registered with the driver.
void check_memory(const Device& device, std::string_view name, const void* data);

// Throws Error(invalid_argument) for a stream of another context than the device's primary one.
void check_stream(const Device& device, Stream stream);

// Whether work given to the stream now would be captured, or refused because another capture is in progress.
bool is_capturing(const Device& device, Stream stream);

// Copies what the view spans to host memory and returns a view of it there; waits for the stream. Only for small
// tensors: target ids.
class HostCopy {
public:
  HostCopy(const Device& device, Stream stream, const TensorView& tensor);
  ~HostCopy();
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;
  [[nodiscard]] const TensorView& view() const noexcept { return view_; }

private:
  char* bytes_;
  TensorView view_;
};

} // namespace bilogp::cuda
