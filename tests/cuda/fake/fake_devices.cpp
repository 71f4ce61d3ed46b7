// The fake driver: devices, contexts, modules and launches.
#include <cstring>
#include <deque>

#include "tests/cuda/fake/fake_driver_internal.hpp"

namespace fake {

Everything& all() {
  static auto* everything = new Everything;
  return *everything;
}

namespace {

struct Module {
  Context* context;
  std::string image;
};

struct Function {
  Context* context;
  std::string entry, image;
  int dynamic_shared = 49152;
  bool takes_large_clusters = false;
};

std::deque<Module>& modules() {
  static auto* all_modules = new std::deque<Module>;
  return *all_modules;
}

std::deque<Function>& functions() {
  static auto* all_functions = new std::deque<Function>;
  return *all_functions;
}

thread_local std::vector<Context*> stack;

int ordinal_of(int handle) {
  const int ordinal = handle - first_handle;
  return ordinal >= 0 && ordinal < static_cast<int>(all().state.devices.size()) ? ordinal : -1;
}

Context* primary_context(int device) {
  const std::scoped_lock lock(all().mutex);
  all().primary.resize(all().state.devices.size());
  all().state.retained.resize(all().state.devices.size());
  std::unique_ptr<Context>& context = all().primary.at(static_cast<std::size_t>(device));
  if (context == nullptr) context = std::make_unique<Context>(Context{device});
  return context.get();
}

// "sm_90a" or "compute_80" of an image, as its maker wrote it; the number alone.
int capability_in(const std::string& image, const char* word) {
  const std::size_t at = image.find(word);
  return at == std::string::npos ? -1 : std::atoi(image.c_str() + at + std::strlen(word));
}

Result result_of_image(const std::string& image, int capability) {
  const std::string& refused = all().state.refused_image;
  if (!refused.empty() && image.find(refused) != std::string::npos) return Result::invalid_image;
  if (image.starts_with("\x7f"
                        "ELF"))
    return capability_in(image, " sm_") == capability ? Result::success : Result::no_binary_for_gpu;
  const int compute = capability_in(image, " compute_");
  if (compute < 0) return Result::invalid_image;
  return compute <= capability ? Result::success : Result::no_binary_for_gpu;
}

unsigned cluster_of(const bilogp::cuda::LaunchConfig& config) {
  for (unsigned i = 0; i < config.attribute_count; ++i)
    if (config.attributes[i].id == bilogp::cuda::attribute_cluster_dimension)
      return config.attributes[i].value.cluster.x;
  return 1;
}

Result result_of_launch(const bilogp::cuda::LaunchConfig& config, const Function& function, const Stream& stream) {
  const DeviceModel& device = all().state.devices[static_cast<std::size_t>(function.context->device)];
  const unsigned cluster = cluster_of(config);
  if (function.context != current() || stream.context != current()) return Result::invalid_handle;
  if (config.grid_x == 0 || config.block_x == 0 || config.block_x > 1024 || config.grid_x % cluster != 0)
    return Result::invalid_value;
  if (static_cast<int>(config.shared_bytes) > function.dynamic_shared) return Result::invalid_value;
  if (cluster > 1 && device.has_clusters == 0) return Result::invalid_cluster_size;
  if (static_cast<int>(cluster) > device.largest_cluster) return Result::invalid_cluster_size;
  if (cluster > 8 && !function.takes_large_clusters) return Result::invalid_cluster_size;
  return Result::success;
}

} // namespace

MakeWork& make_work() {
  static MakeWork maker = nullptr;
  return maker;
}

Context* current() {
  return stack.empty() ? nullptr : stack.back();
}

Result begin(const char* function) {
  DriverState& state = all().state;
  const std::scoped_lock lock(all().mutex);
  ++state.calls;
  for (Failure& failure : state.failures) {
    if (failure.function != function || failure.times <= 0) continue;
    if (failure.skipped-- > 0) continue;
    --failure.times;
    return static_cast<Result>(failure.code);
  }
  return Result::success;
}

} // namespace fake

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace fake;
namespace cuda = bilogp::cuda;

extern "C" {

DriverState* fake_driver_state() {
  return &all().state;
}

Result cuInit(unsigned) {
  begin("cuInit");
  return static_cast<Result>(all().state.init_result);
}
Result cuDriverGetVersion(int* version) {
  *version = all().state.version;
  return Result::success;
}
Result cuDeviceGetCount(int* count) {
  *count = static_cast<int>(all().state.devices.size());
  return begin("cuDeviceGetCount");
}
Result cuDeviceGet(int* device, int ordinal) {
  *device = first_handle + ordinal;
  return ordinal_of(*device) < 0 ? Result::invalid_device : begin("cuDeviceGet");
}
Result cuDeviceGetName(char* name, int size, int device) {
  std::strncpy(name, all().state.devices.at(static_cast<std::size_t>(ordinal_of(device))).name,
               static_cast<std::size_t>(size) - 1);
  return begin("cuDeviceGetName");
}

Result cuDeviceGetAttribute(int* value, cuda::DeviceAttribute attribute, int handle) {
  if (ordinal_of(handle) < 0) return Result::invalid_device;
  const DeviceModel& device = all().state.devices[static_cast<std::size_t>(ordinal_of(handle))];
  switch (attribute) {
  case cuda::DeviceAttribute::multiprocessor_count:
    *value = device.multiprocessors;
    break;
  case cuda::DeviceAttribute::l2_cache_size:
    *value = device.l2_bytes;
    break;
  case cuda::DeviceAttribute::max_threads_per_multiprocessor:
    *value = device.threads_per_multiprocessor;
    break;
  case cuda::DeviceAttribute::compute_capability_major:
    *value = device.capability / 10;
    break;
  case cuda::DeviceAttribute::compute_capability_minor:
    *value = device.capability % 10;
    break;
  case cuda::DeviceAttribute::max_shared_memory_per_multiprocessor:
    *value = device.shared_per_multiprocessor;
    break;
  case cuda::DeviceAttribute::max_shared_memory_per_block_optin:
    *value = device.shared_per_block;
    break;
  case cuda::DeviceAttribute::cluster_launch:
    *value = device.has_clusters;
    break;
  }
  return begin("cuDeviceGetAttribute");
}

Result cuDevicePrimaryCtxRetain(Context** context, int handle) {
  if (const Result result = begin("cuDevicePrimaryCtxRetain"); result != Result::success) return result;
  const auto ordinal = static_cast<std::size_t>(ordinal_of(handle));
  const std::scoped_lock lock(all().mutex);
  *context = primary_context(ordinal_of(handle));
  ++all().state.retained[ordinal];
  return Result::success;
}
Result cuDevicePrimaryCtxRelease_v2(int handle) {
  const std::scoped_lock lock(all().mutex);
  --all().state.retained.at(static_cast<std::size_t>(ordinal_of(handle)));
  return begin("cuDevicePrimaryCtxRelease_v2");
}
Result cuDevicePrimaryCtxGetState(int handle, unsigned* flags, int* active) {
  const std::scoped_lock lock(all().mutex);
  const auto ordinal = static_cast<std::size_t>(ordinal_of(handle));
  *flags = 0;
  *active = ordinal < all().state.retained.size() && all().state.retained[ordinal] > 0 ? 1 : 0;
  return begin("cuDevicePrimaryCtxGetState");
}

// The primary context, or one that is nobody's.
Context* fake_context(int device, bool is_primary) {
  static auto* const foreign = new std::deque<Context>; // to the end of the process
  if (is_primary) return primary_context(device);
  const std::scoped_lock lock(all().mutex);
  return &foreign->emplace_back(Context{device});
}

Result cuCtxCreate_v2(Context** context, unsigned, int handle) {
  *context = fake_context(ordinal_of(handle), false);
  stack.push_back(*context);
  return begin("cuCtxCreate_v2");
}
Result cuCtxDestroy_v2(Context*) {
  return begin("cuCtxDestroy_v2");
}

Result cuCtxGetCurrent(Context** context) {
  *context = current();
  return begin("cuCtxGetCurrent");
}
Result cuCtxPushCurrent_v2(Context* context) {
  stack.push_back(context);
  return begin("cuCtxPushCurrent_v2");
}
Result cuCtxPopCurrent_v2(Context** context) {
  if (stack.empty()) return Result::invalid_context;
  *context = stack.back();
  stack.pop_back();
  return begin("cuCtxPopCurrent_v2");
}

Result cuModuleLoadDataEx(Module** module, const void* image, unsigned, int*, void**) {
  if (const Result result = begin_unsafe("cuModuleLoadDataEx"); result != Result::success) return result;
  if (current() == nullptr) return Result::invalid_context;
  const std::scoped_lock lock(all().mutex);
  std::string bytes = static_cast<const char*>(image);
  const auto device = static_cast<std::size_t>(current()->device);
  if (const Result result = result_of_image(bytes, all().state.devices[device].capability); result != Result::success)
    return result;
  *module = &modules().emplace_back(Module{current(), std::move(bytes)});
  ++all().state.modules_now;
  return Result::success;
}
Result cuModuleUnload(Module*) {
  --all().state.modules_now;
  return begin("cuModuleUnload");
}
Result cuModuleGetFunction(Function** function, Module* module, const char* name) {
  if (const Result result = begin("cuModuleGetFunction"); result != Result::success) return result;
  const std::scoped_lock lock(all().mutex);
  *function = &functions().emplace_back(Function{module->context, name, module->image});
  return Result::success;
}
Result cuFuncSetAttribute(Function* function, cuda::FunctionAttribute attribute, int value) {
  if (const Result result = begin("cuFuncSetAttribute"); result != Result::success) return result;
  const int most = all().state.devices[static_cast<std::size_t>(function->context->device)].shared_per_block;
  if (attribute == cuda::FunctionAttribute::max_dynamic_shared_bytes && value > most) return Result::invalid_value;
  if (attribute == cuda::FunctionAttribute::max_dynamic_shared_bytes) function->dynamic_shared = value;
  if (attribute == cuda::FunctionAttribute::non_portable_cluster_size_allowed)
    function->takes_large_clusters = value != 0;
  return Result::success;
}
Result cuFuncGetAttribute(int* value, cuda::FunctionAttribute, Function*) {
  *value = 0; // static shared memory
  return begin("cuFuncGetAttribute");
}

Result cuOccupancyMaxActiveClusters(int* count, Function* function, const cuda::LaunchConfig* config) {
  const DeviceModel& device = all().state.devices[static_cast<std::size_t>(function->context->device)];
  const int blocks = static_cast<int>(cluster_of(*config)), groups = device.multiprocessors / device.group;
  // Of blocks that are alone on their multiprocessors.
  *count = groups * (device.group / blocks) + device.multiprocessors % device.group / blocks;
  if (blocks > device.largest_cluster) *count = 0;
  if (static_cast<int>(config->shared_bytes) > function->dynamic_shared) return Result::invalid_value;
  return begin("cuOccupancyMaxActiveClusters");
}

Result cuLaunchKernelEx(const cuda::LaunchConfig* config, Function* function, void** arguments, void**) {
  Result result = begin("cuLaunchKernelEx");
  const std::scoped_lock lock(all().mutex);
  Stream* const stream = stream_of(config->stream);
  if (stream == nullptr || arguments[0] == nullptr) return Result::invalid_handle;
  if (result == Result::success) result = result_of_launch(*config, *function, *stream);
  const bool is_good = result == Result::success;
  if (is_good) stream->is_busy = true;
  if (!all().state.records) return result;
  all().state.launches.push_back({function->context->device, function->entry, function->image, config->grid_x,
                                  config->block_x, cluster_of(*config), config->shared_bytes, config->stream,
                                  !is_good});
  if (!is_good || make_work() == nullptr) return result;
  Work work = make_work()(all().state.launches.back(), arguments);
  if (stream->capture == 0) return work();
  static_cast<Graph*>(stream->graph)->work.push_back(std::move(work));
  return Result::success;
}

Result cuGetErrorName(Result result, const char** name) {
  const bool is_known = result == Result::illegal_address || result == Result::out_of_memory;
  *name = result == Result::illegal_address ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : is_known                        ? "CUDA_ERROR_OUT_OF_MEMORY"
                                            : nullptr;
  return is_known ? Result::success : Result::invalid_value;
}
Result cuGetErrorString(Result result, const char** text) {
  const bool is_fault = result == Result::illegal_address && !all().state.fault.empty();
  *text = is_fault ? all().state.fault.c_str() : nullptr;
  return is_fault ? Result::success : Result::invalid_value;
}

} // extern "C"
// NOLINTEND(readability-identifier-naming)
