#include "tests/gpu_model/hopper_batch.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "runtime/backends/cuda/hopper_plans.hpp"

namespace gpu_model {
namespace {

namespace cuda = bilogp::cuda;

constexpr std::uintptr_t vector_bytes = 16;

Storage storage_of(const HopperKernel& kernel) {
  return kernel.type == "Float32" ? Storage::float32 : kernel.type == "Float16" ? Storage::float16 : Storage::bfloat16;
}

bilogp::DType dtype_of(Storage storage) {
  return storage == Storage::float32   ? bilogp::DType::float32
         : storage == Storage::float16 ? bilogp::DType::float16
                                       : bilogp::DType::bfloat16;
}

BatchShape fitted(const HopperKernel& kernel, BatchShape shape) {
  shape.storage = storage_of(kernel);
  const std::int64_t width = shape.storage == Storage::float32 ? 4 : 8; // of a vector
  shape.vocab_size = shape.columns = kernel.vocab_size;
  if (shape.offset != 0) return shape;
  shape.columns = ((kernel.vocab_size + width - 1) / width + shape.spare_vectors) * width;
  shape.row_padding *= width;
  return shape;
}

// An H200 with fewer multiprocessors.
cuda::DeviceLimits small_card(int multiprocessors) {
  cuda::DeviceLimits limits;
  limits.capability = 90;
  limits.multiprocessors = multiprocessors;
  limits.threads_per_multiprocessor = 2048;
  limits.shared_per_block = 227 * 1024;
  limits.shared_per_multiprocessor = 228 * 1024;
  limits.l2_bytes = 60 << 20;
  limits.has_clusters = true;
  return limits;
}

} // namespace

HopperBatch::HopperBatch(const HopperKernel& kernel, const BatchShape& shape, int multiprocessors)
    : ModelBatch(fitted(kernel, shape)), kernel_(kernel), multiprocessors_(multiprocessors) {}

// The sixteen bytes that hold something of a row may be read.
template<class Arguments> void HopperBatch::allow_vectors(Call& call, const Arguments& a) const {
  for (std::int64_t r = 0; r < rows(); ++r) {
    const auto begin =
        reinterpret_cast<std::uintptr_t>(a.logits) + static_cast<std::uintptr_t>(row_offset(r) * element_size());
    const std::uintptr_t end = begin + static_cast<std::uintptr_t>(vocab_size() * element_size());
    const std::uintptr_t first = begin / vector_bytes * vector_bytes,
                         last = (end + vector_bytes - 1) / vector_bytes * vector_bytes;
    call.launch.memory.push_back({reinterpret_cast<const void*>(first), last - first, false});
  }
}

template<class Arguments> std::string HopperBatch::launch_planned(Call& call, const Arguments& a, bilogp::Operator op) {
  cuda::LaunchShape shape;
  shape.op = op;
  shape.logits_dtype = dtype_of(shape_.storage);
  shape.rows = rows();
  shape.columns = shape.vocab_size = vocab_size();
  shape.stored_columns = shape_.columns;
  shape.ids_per_row = shape_.ids_per_row;
  shape.alignment = shape_.offset == 0 ? static_cast<int>(vector_bytes) : static_cast<int>(element_size());
  shape.has_row_temperatures = shape_.row_temperatures;
  const std::optional<cuda::LaunchPlan> plan = cuda::hopper_plan(shape, small_card(multiprocessors_), kernel_.variant);
  if (!plan) return "no plan for this shape";
  allow_vectors(call, a);
  std::vector<std::int32_t> nodes(static_cast<std::size_t>(2 * plan->nodes), -7);
  std::vector<std::uint32_t> tickets(static_cast<std::size_t>(plan->tickets), 0);
  call.launch.memory.push_back({nodes.data(), nodes.size() * 4, true});
  call.launch.memory.push_back({tickets.data(), tickets.size() * 4, true});
  bilogp::kernel::GpuPlan gpu = plan->gpu;
  gpu.rows = rows();
  gpu.nodes = nodes.data();
  gpu.tickets = tickets.data();
  call.launch.blocks = plan->grid;
  call.launch.threads = static_cast<int>(plan->block);
  call.launch.cluster = static_cast<int>(plan->cluster);
  call.launch.resident_blocks = std::max(multiprocessors_, call.launch.cluster);
  call.launch.has_shared_memory = true;
  call.launch.shared_bytes = plan->shared_bytes;
  call.launch.seed = shape_.seed * 1000 + launches_++;
  const auto entry = reinterpret_cast<void (*)(Arguments, bilogp::kernel::GpuPlan)>(kernel_.entry);
  std::string error = gpu_model::run(call.launch, [&] { entry(a, gpu); });
  if (error.empty() && std::any_of(tickets.begin(), tickets.end(), [](std::uint32_t t) { return t != 0; }))
    return "a ticket is not zero after the launch";
  return error;
}

std::string HopperBatch::launch(Call& call, const bilogp::kernel::LogpForwardArguments& a, Cut) {
  return launch_planned(call, a, bilogp::Operator::logp_forward);
}
std::string HopperBatch::launch(Call& call, const bilogp::kernel::LogpGradientArguments& a, Cut) {
  return launch_planned(call, a, bilogp::Operator::logp_with_gradient);
}

std::vector<int> missing_variants(const std::string& op) {
  std::vector<int> missing;
  for (const std::uint8_t variant :
       cuda::hopper_variants(op == "forward" ? bilogp::Operator::logp_forward : bilogp::Operator::logp_with_gradient))
    if (std::none_of(hopper_kernels().begin(), hopper_kernels().end(),
                     [&](const HopperKernel& kernel) { return kernel.op == op && kernel.variant == variant; }))
      missing.push_back(variant);
  return missing;
}

std::string check_kernel(const HopperKernel& kernel, const BatchShape& shape, int multiprocessors) {
  HopperBatch batch(kernel, shape, multiprocessors);
  std::string difference;
  if (kernel.op == "forward") {
    difference = batch.check_forward();
  } else {
    for (const bool in_place : {false, true})
      if (difference.empty()) difference = batch.check_with_gradient(in_place);
  }
  if (difference.empty()) return {};
  return fmt::format("{} variant {} {} {} on {} multiprocessors, {}: {}", kernel.op, kernel.variant, kernel.type,
                     kernel.vocab_size, multiprocessors, describe(shape), difference);
}

} // namespace gpu_model
