// Launch plans of the forward and gradient in one pass: rows in the shared memory of clusters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/backends/cuda/plans.hpp"

namespace bilogp::cuda {

constexpr int fused_count = 5;

// Number `number`, from 0 on, if it serves the shape; its variant is the number, which the caller counts on from his
// first one.
std::optional<LaunchPlan> fused_plan(const LaunchShape& shape, const DeviceLimits& limits, int number);

// The one that serves it best.
std::optional<LaunchPlan> fused_choice(const LaunchShape& shape, const DeviceLimits& limits);

std::vector<std::string> fused_definitions(int number);

} // namespace bilogp::cuda
