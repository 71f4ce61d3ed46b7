#include "tests/gpu_model/kernels.hpp"

namespace kernel = bilogp::kernel;

extern "C" {
#define BILOGP_DECLARE(instance)                                                                                       \
  void model_logp_forward_##instance(kernel::LogpForwardArguments, kernel::GpuPlan);                                   \
  void model_logp_backward_##instance(kernel::LogpBackwardArguments, kernel::GpuPlan);                                 \
  void model_logp_partial_##instance(kernel::LogpPartialArguments, kernel::GpuPlan);                                   \
  void model_logp_finish_##instance(kernel::LogpFinishArguments, kernel::GpuPlan, kernel::GpuShards);                  \
  void model_logp_with_gradient_##instance(kernel::LogpGradientArguments, kernel::GpuPlan);
BILOGP_DECLARE(Float32_wide_ids)
BILOGP_DECLARE(Float16_wide_ids)
BILOGP_DECLARE(Bfloat16_wide_ids)
BILOGP_DECLARE(Float32_narrow_ids)
BILOGP_DECLARE(Float16_narrow_ids)
BILOGP_DECLARE(Bfloat16_narrow_ids)
BILOGP_DECLARE(Bfloat16_native)
}

namespace gpu_model {

#define BILOGP_KERNELS(instance, warps)                                                                                \
  {model_logp_forward_##instance, model_logp_backward_##instance,      model_logp_partial_##instance,                  \
   model_logp_finish_##instance,  model_logp_with_gradient_##instance, warps}

const Kernels& kernels(bilogp::reference::Storage storage, Build build) {
  static const Kernels wide[] = {BILOGP_KERNELS(Float32_wide_ids, 8), BILOGP_KERNELS(Float16_wide_ids, 8),
                                 BILOGP_KERNELS(Bfloat16_wide_ids, 8)};
  static const Kernels narrow[] = {BILOGP_KERNELS(Float32_narrow_ids, 3), BILOGP_KERNELS(Float16_narrow_ids, 3),
                                   BILOGP_KERNELS(Bfloat16_narrow_ids, 3)};
  static const Kernels native = BILOGP_KERNELS(Bfloat16_native, 8);
  const auto index = static_cast<std::size_t>(storage);
  if (build == Build::native) return native;
  return build == Build::wide_ids ? wide[index] : narrow[index];
}

} // namespace gpu_model
