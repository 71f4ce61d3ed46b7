// The Runtimes of the process and the targets they stand for.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "bilogp/runtime.hpp"
#include "runtime/backends/cpu/targets.hpp"
#include "runtime/backends/cuda/targets.hpp"

namespace bilogp {

// The CUDA devices of a machine may differ: then "cuda" stands for each one's own target.
struct EveryCudaDevice {};

using RuntimeTarget = std::variant<cpu::Target, cuda::Target, EveryCudaDevice>;

// Of a Runtime that is not "auto"; valid to the end of the process.
const RuntimeTarget& target_of(const Runtime& runtime);

} // namespace bilogp
