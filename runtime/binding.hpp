// Binding: from a Runtime and a specialization to a CPU kernel that can be launched. (cuda_binding.hpp for CUDA.)
#pragma once

#include <cstdint>

#include "bilogp/runtime.hpp"
#include "runtime/backends/cpu/kernels.hpp"
#include "runtime/kernel_table.hpp"

namespace bilogp {
inline namespace v1 {

class Binding {
public:
  // The runtime that a call on the CPU really uses. Throws Error(unsupported) where the tensors are on another device,
  // the runtime is not a CPU's, or this machine lacks its target.
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
  static int target_id(const Runtime& runtime) noexcept { return runtime.target_id_; }

private:
  static const LoadedKernel& load(const Runtime& runtime, const Specialization& spec, KernelKey key);
};

} // namespace v1

// Joins error words (count, lowest bad row, its id) whose rows lie `row_offset` behind those of `into`.
inline void merge_target_errors(std::int64_t* into, const std::int64_t* words, std::int64_t row_offset = 0) noexcept {
  if (words[0] == 0) return;
  const std::int64_t row = words[1] + row_offset;
  if (into[0] == 0 || row < into[1]) {
    into[1] = row;
    into[2] = words[2];
  }
  into[0] += words[0];
}

// Target ids flagged on the CPU with validation off and no buffer of the caller's.
void record_target_errors(const std::int64_t words[4]) noexcept;

} // namespace bilogp
