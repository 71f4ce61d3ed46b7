// Where a kernel comes from: this process, the store, or the compiler.
#pragma once

#include "runtime/backends/cpu/targets.hpp"
#include "runtime/backends/cuda/devices.hpp"
#include "runtime/kernel_table.hpp"

namespace bilogp {

// Both ask the store, else compile (one process per key at a time) and store. The image is loaded before it is stored,
// so that nothing is published that does not load. Throw Error(compile_failed) and what loading throws.

// On a target that this machine lacks (not `runnable`) the entry stays null.
LoadedKernel provide_cpu_kernel(const Specialization& spec, const cpu::Target& target, bool runnable);

// Loaded into the device's context; without a device the entry stays null.
LoadedKernel provide_cuda_kernel(const Specialization& spec, const cuda::Target& target, cuda::Device* device);

} // namespace bilogp
