// The kernels' argument structs, as the host sees them.
#pragma once

namespace bilogp::kernel {
#include "templates/canon/arguments.h"
#include "templates/device/gpu/plan.h"
} // namespace bilogp::kernel
