// A batch of rows, run through a kernel of a Hopper plan on the host model and compared with the slow reference.
#pragma once

#include "runtime/backends/cuda/plans.hpp"
#include "tests/gpu_model/hopper_kernels.hpp"
#include "tests/gpu_model/model_batch.hpp"

namespace gpu_model {

class HopperBatch : public ModelBatch {
public:
  // `shape` with the kernel's type and vocabulary, on a card of so many multiprocessors. Rows that begin at a boundary
  // (offset 0) are as long as vectors need, with padding in vectors; others are as they are.
  HopperBatch(const HopperKernel& kernel, const BatchShape& shape, int multiprocessors);

protected:
  std::string launch(Call& call, const bilogp::kernel::LogpForwardArguments& a, Cut cut) override;
  std::string launch(Call& call, const bilogp::kernel::LogpGradientArguments& a, Cut cut) override;

private:
  template<class Arguments> void allow_vectors(Call& call, const Arguments& a) const;
  template<class Arguments> std::string launch_planned(Call& call, const Arguments& a, bilogp::Operator op);

  const HopperKernel& kernel_;
  int multiprocessors_;
};

// The variants of an operator ("forward", "with_gradient") of which no kernel is here.
std::vector<int> missing_variants(const std::string& op);

// "" or the first difference between a kernel and the reference: a forward, or a gradient out of place and in place.
std::string check_kernel(const HopperKernel& kernel, const BatchShape& shape, int multiprocessors);

} // namespace gpu_model
