// The kernels of the plain plan, compiled for the host model.
#pragma once

#include "runtime/kernel_arguments.hpp"
#include "tests/reference/canon_reference.hpp"

namespace gpu_model {

// wide_ids: i64 ids, eight warps. narrow_ids: i32 ids, three warps. native: as wide_ids, native numerics.
enum class Build : std::uint8_t { wide_ids, narrow_ids, native };

struct Kernels {
  void (*forward)(bilogp::kernel::LogpForwardArguments, bilogp::kernel::GpuPlan);
  void (*backward)(bilogp::kernel::LogpBackwardArguments, bilogp::kernel::GpuPlan);
  void (*partial)(bilogp::kernel::LogpPartialArguments, bilogp::kernel::GpuPlan);
  void (*finish)(bilogp::kernel::LogpFinishArguments, bilogp::kernel::GpuPlan, bilogp::kernel::GpuShards);
  void (*with_gradient)(bilogp::kernel::LogpGradientArguments, bilogp::kernel::GpuPlan);
  int warps;
};

const Kernels& kernels(bilogp::reference::Storage storage, Build build);

} // namespace gpu_model
