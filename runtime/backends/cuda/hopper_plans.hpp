// Launch plans for devices with bulk copies and clusters: Hopper and newer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/backends/cuda/plans.hpp"

namespace bilogp::cuda {

// A plan for this shape where one serves it better than the plain plan. `forced`: exactly that variant, or
// automatic_plan. Allocates nothing.
std::optional<LaunchPlan> hopper_plan(const LaunchShape& shape, const DeviceLimits& limits, int forced);

// "BILOGP_WARPS=12", ...: what a kernel of spec.variant (1 and up) is compiled with.
std::vector<std::string> hopper_definitions(const Specialization& spec);

// The variants that there are of an operator; for `warmup` and the tests.
std::vector<std::uint8_t> hopper_variants(Operator op);

} // namespace bilogp::cuda
