#include "runtime/backends/cuda/hopper_plans.hpp"

namespace bilogp::cuda {

std::optional<LaunchPlan> hopper_plan(const LaunchShape&, const DeviceLimits&, int) {
  return std::nullopt;
}

std::vector<std::string> hopper_definitions(const Specialization&) {
  return {};
}

std::vector<std::uint8_t> hopper_variants(Operator, DType) {
  return {};
}

} // namespace bilogp::cuda
