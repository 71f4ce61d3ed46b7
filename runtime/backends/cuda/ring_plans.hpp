// Launch plans of the forward for many rows: persistent blocks around a ring of tiles.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/backends/cuda/plans.hpp"

namespace bilogp::cuda {

constexpr int ring_count = 9;

// Ring number `ring`, from 0 on, if it serves the shape; without its variant, which the caller numbers.
std::optional<LaunchPlan> ring_plan(const LaunchShape& shape, const DeviceLimits& limits, int ring);

// The one that serves it best; -1 where none does.
int ring_choice(const LaunchShape& shape, const DeviceLimits& limits);

std::vector<std::string> ring_definitions(int ring);

} // namespace bilogp::cuda
