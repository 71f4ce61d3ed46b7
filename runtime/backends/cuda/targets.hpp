// Architectures that CUDA kernels are compiled for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bilogp::cuda {

struct Target {
  std::string name;   // exact: "sm_75", "sm_90a"; part of the key
  int capability = 0; // 75, 90, 121
  friend bool operator==(const Target&, const Target&) = default;
};

// Oldest and newest first compute capability that the kernels are written for.
constexpr int oldest_capability = 75;
constexpr int bulk_copy_capability = 90; // bulk copies and clusters
// Hopper's plans: consumer cards from 12.0 on have these too, but not the shared memory that the plans hold rows in.
constexpr bool has_hopper_plans(int capability) {
  return capability >= bulk_copy_capability && capability < 120;
}

// "sm_75", "sm_80", ... in rising order, Hopper as sm_90a. Which of them can be compiled for is NVRTC's to say, at the
// first compile: naming them loads nothing.
std::vector<std::string> known_targets();

// The target of a device: Hopper's with its own suffix, since code for it runs nowhere else anyway.
// Throws Error(unsupported) for a device older than sm_75.
Target target_of_capability(int capability);

// "sm_90a". Throws Error(invalid_argument) naming the known ones.
Target resolve_target(std::string_view name);

// What NVRTC is asked for: the target's own machine code, or PTX of the newest older architecture that it knows, which
// the driver then compiles.
struct CodeChoice {
  std::string architecture; // "sm_90a", "compute_121"
  bool is_ptx = false;
};
CodeChoice code_for(const Target& target, const std::vector<int>& nvrtc_archs);

} // namespace bilogp::cuda
