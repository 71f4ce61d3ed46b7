#include "runtime/operators/gpu_call.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cuda/pointers.hpp"
#include "runtime/cuda_binding.hpp"
#include "runtime/operators/checks.hpp"

namespace bilogp {
namespace {

void check_alignment(std::string_view name, const void* data, DType dtype) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const auto size = static_cast<std::uintptr_t>(size_of(dtype));
  if (address % size != 0)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} begins at the address {:#x}; on a GPU it must be a multiple of the {} bytes of its "
                            "{} elements",
                            name, address, size, to_string(dtype)));
}

cuda::LaunchConfig config_of(const cuda::LaunchPlan& plan, cuda::Stream stream, cuda::LaunchAttribute& cluster) {
  cuda::LaunchConfig config{};
  config.grid_x = plan.grid;
  config.block_x = plan.block;
  config.grid_y = config.grid_z = config.block_y = config.block_z = 1;
  config.shared_bytes = plan.shared_bytes;
  config.stream = stream;
  if (plan.cluster > 1) {
    cluster.id = cuda::attribute_cluster_dimension;
    cluster.value.cluster = {plan.cluster, 1, 1};
    config.attributes = &cluster;
    config.attribute_count = 1;
  }
  return config;
}

// Whether a launch was refused for its clusters: the codes that a slice of a card gives may mean other things as well.
bool means_no_room_for_clusters(const cuda::Driver& driver, cuda::Result result, cuda::Function function,
                                const cuda::LaunchConfig& config) {
  if (config.attribute_count == 0) return false;
  if (result == cuda::Result::invalid_cluster_size) return true;
  if (result != cuda::Result::launch_out_of_resources && result != cuda::Result::invalid_value) return false;
  int clusters = 0;
  return driver.occupancy_clusters(&clusters, function, &config) != cuda::Result::success || clusters == 0;
}

} // namespace

GpuCall::GpuCall(const Runtime& runtime, const Device& device, const LogpOptions& options, void* stream)
    : device_(cuda_device(runtime, device)), current_(device_.driver(), device_.context()),
      stream_(static_cast<cuda::Stream>(stream)), options_(options),
      errors_(reinterpret_cast<kernel::i64*>(options.error_buffer)) {
  if (errors_ == nullptr) errors_ = reinterpret_cast<kernel::i64*>(device_.error_words());
  if (options.bad_ids_counted) errors_ = nullptr; // of which the kernels count nothing
}

void GpuCall::check_tensors(std::initializer_list<NamedTensor> tensors) const {
  for (const auto& [name, tensor] : tensors) check_alignment(name, tensor->data, tensor->dtype);
  check_alignment("temperature_per_row", options_.temperature_per_row.data, DType::float32);
  check_alignment("error_buffer", options_.error_buffer, DType::int64);
  if (options_.validate != Validate::on) return;
  cuda::check_stream(device_, stream_);
  for (const NamedTensor& named : tensors) cuda::check_memory(device_, named.name, named.tensor->data);
  cuda::check_memory(device_, "error_buffer", options_.error_buffer);
  cuda::check_memory(device_, "temperature_per_row", options_.temperature_per_row.data);
}

void GpuCall::check_target_ids(const TensorView& ids, int leading_rank, std::int64_t vocab_size) const {
  if (options_.validate != Validate::on || ids.elements() == 0) return;
  if (cuda::is_capturing(device_, stream_))
    throw Error(ErrorKind::invalid_argument, "validate is on, but the stream is being captured, where nothing can be "
                                             "read back; set validate to off and ask take_errors after a replay");
  const cuda::HostCopy copy(device_, stream_, ids);
  check::target_ids(copy.view(), leading_rank, vocab_size, options_.ignore_index);
}

void GpuCall::start(const Specialization& spec, const cuda::LaunchShape& shape, void* arguments, std::int64_t first_row,
                    const kernel::GpuShards* shards) const {
  // More than once only where the plan's clusters turned out to be too large: it then takes smaller ones.
  while (!start_planned(spec, shape, arguments, first_row, shards)) {
  }
}

bool GpuCall::start_planned(const Specialization& spec, const cuda::LaunchShape& shape, void* arguments,
                            std::int64_t first_row, const kernel::GpuShards* shards) const {
  cuda::LaunchPlan plan = cuda::plan_launch(shape, device_.limits(), options_.plan);
  Specialization planned = spec;
  planned.variant = plan.variant;
  planned = normalised(planned); // GCC 14 takes a temporary for what the reference would be bound to
  const LoadedKernel* const kernel = cuda_kernel(device_, planned, stream_);
  if (kernel == nullptr) return false;
  std::optional<cuda::ScratchLease> lease;
  if (plan.nodes > 0 || plan.tickets > 0) {
    take_scratch(lease);
    plan.gpu.nodes = reinterpret_cast<kernel::i32*>(lease->scratch().nodes);
    plan.gpu.tickets = reinterpret_cast<kernel::u32*>(lease->scratch().tickets);
  }
  plan.gpu.rows = shape.rows;
  plan.gpu.first_row = first_row;
  cuda::LaunchAttribute cluster{};
  cuda::LaunchConfig config = config_of(plan, stream_, cluster);
  void* parameters[] = {arguments, &plan.gpu, const_cast<kernel::GpuShards*>(shards)};
  auto* const function = static_cast<cuda::Function>(kernel->entry);
  // A cluster for every row, as far as they run at once; one more would wait for the others to end.
  if (const int at_once = plan.fills_device ? device_.lone_clusters(plan.cluster, function, config) : 0; at_once > 0)
    config.grid_x = static_cast<unsigned>(std::min<std::int64_t>(at_once, shape.rows)) * plan.cluster;
  const cuda::Result result = device_.driver().launch_kernel(&config, function, parameters, nullptr);
  if (result != cuda::Result::success && means_no_room_for_clusters(device_.driver(), result, function, config)) {
    device_.refuse_clusters(static_cast<int>(plan.cluster));
    return false;
  }
  cuda::check(device_.driver(), result, "launching a kernel");
  return true;
}

} // namespace bilogp
