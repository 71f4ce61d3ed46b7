#include "tests/gpu_model/hopper_kernels.hpp"

namespace gpu_model {
namespace {

std::vector<HopperKernel>& all() {
  static std::vector<HopperKernel> kernels;
  return kernels;
}

} // namespace

bool add_hopper_kernel(const char* op, int variant, const char* type, std::int64_t vocab_size, void (*entry)()) {
  all().push_back({op, variant, type, vocab_size, entry});
  return true;
}

const std::vector<HopperKernel>& hopper_kernels() {
  return all();
}

} // namespace gpu_model
