// Binding: from a Runtime and a specialization to a kernel that can be launched.
#pragma once

#include "bilogp/runtime.hpp"
#include "runtime/backends/cpu/kernels.hpp"
#include "runtime/backends/cpu/targets.hpp"
#include "runtime/kernel_table.hpp"

namespace bilogp {
inline namespace v1 {

class Binding {
public:
  // The runtime that a call on `device` really uses. Throws Error(unsupported) where there is none, or where this
  // machine lacks the runtime's target.
  static Runtime& launchable(Runtime& runtime, const Device& device);

  // The loaded kernel; compiled, or read from the store, at first use.
  static const LoadedKernel& kernel(const Runtime& runtime, const Specialization& spec) {
    const Specialization normal = normalised(spec);
    const KernelKey key = kernel_key(normal, runtime.target_id_);
    if (const LoadedKernel* loaded = KernelTable::of_process().find(key)) return *loaded;
    return load(runtime, normal, key);
  }
  static cpu::KernelFunction cpu_function(const Runtime& runtime, const Specialization& spec) {
    return reinterpret_cast<cpu::KernelFunction>(kernel(runtime, spec).entry);
  }

  static bool is_automatic(const Runtime& runtime) noexcept { return runtime.target_id_ < 0; }

private:
  static const LoadedKernel& load(const Runtime& runtime, const Specialization& spec, KernelKey key);
};

} // namespace v1

// Target ids flagged with validation off and no buffer of the caller's: one set of words per device.
void record_target_errors(const Device& device, const std::int64_t words[4]) noexcept;

} // namespace bilogp
