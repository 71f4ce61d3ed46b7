// From a Runtime, a device and a specialization to a CUDA kernel that can be launched.
#pragma once

#include "bilogp/runtime.hpp"
#include "runtime/backends/cuda/devices.hpp"
#include "runtime/kernel_table.hpp"

namespace bilogp {

// Kernels of a device have ids of their own in the table: they are loaded into its context.
constexpr int first_cuda_device_id = 512;
constexpr int id_of_device(int ordinal) {
  return first_cuda_device_id + ordinal;
}

// The device of a call's tensors. Throws Error(unsupported) where the runtime is another back end's or another
// architecture's, or there is no driver.
cuda::Device& cuda_device(const Runtime& runtime, const Device& device);

// The loaded kernel of a normalised specialization; compiled, or read from the store, at first use. A stream that is
// being captured cannot wait for that: Error(device), naming `warmup`.
// Null where NVRTC is too old for its clusters: warned of once, and the device's plans do without them from now on.
const LoadedKernel* cuda_kernel(cuda::Device& device, const Specialization& normal, cuda::Stream stream);

// The same for `warmup`, which is not part of anybody's capture.
const LoadedKernel* warm_cuda_kernel(cuda::Device& device, const Specialization& normal);

// Of a target that no device here has: only stored.
const LoadedKernel* stored_cuda_kernel(const Runtime& runtime, const cuda::Target& target,
                                       const Specialization& normal);

} // namespace bilogp
