// The kernels of Hopper plans that were compiled for the host model. The kernels' own sources include this, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpu_model {

struct HopperKernel {
  std::string op;   // "forward" or "with_gradient"
  int variant = 0;  // of hopper_plans.hpp
  std::string type; // "Bfloat16"
  std::int64_t vocab_size = 0;
  void (*entry)() = nullptr; // to be called as what it is
};

bool add_hopper_kernel(const char* op, int variant, const char* type, std::int64_t vocab_size, void (*entry)());
const std::vector<HopperKernel>& hopper_kernels();

} // namespace gpu_model
