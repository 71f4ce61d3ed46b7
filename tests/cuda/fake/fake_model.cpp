// The fake driver with two small devices that run kernels: the plain plan's, on the host model.
#include "tests/cuda/fake/fake_driver_internal.hpp"
#include "tests/gpu_model/kernels.hpp"
#include "tests/gpu_model/machine_model.hpp"

namespace fake {
namespace {

namespace kernel = bilogp::kernel;
using bilogp::reference::Storage;

bool has(const Launch& launch, const char* part) {
  return launch.image.find(part) != std::string::npos;
}

const gpu_model::Kernels& kernels_of(const Launch& launch) {
  const Storage storage = has(launch, "BILOGP_LOGITS=Float16")    ? Storage::float16
                          : has(launch, "BILOGP_LOGITS=Bfloat16") ? Storage::bfloat16
                                                                  : Storage::float32;
  const bool is_native = has(launch, "BILOGP_NUMERICS=1"); // which the model has in bfloat16 alone
  return gpu_model::kernels(storage, is_native                      ? gpu_model::Build::native
                                     : has(launch, "BILOGP_ID=i32") ? gpu_model::Build::narrow_ids
                                                                    : gpu_model::Build::wide_ids);
}

// Everything that is allocated on the device may be read and written.
Result run(const Launch& shape, int warps, const std::function<void()>& thread) {
  static std::uint64_t seed = 0;
  gpu_model::Launch launch;
  launch.blocks = shape.grid;
  launch.threads = 32 * warps;
  launch.seed = ++seed;
  for (const auto& [begin, allocation] : all().memory)
    if (allocation.device == shape.device) launch.memory.push_back({allocation.bytes, allocation.size, true});
  all().state.fault = gpu_model::run(launch, thread);
  return all().state.fault.empty() ? Result::success : Result::illegal_address;
}

// The kernel's arguments by value, as a launch takes them.
template<class Arguments, class... More>
Work work_of(const Launch& launch, void (*entry)(Arguments, kernel::GpuPlan, More...), void** arguments) {
  const auto own = *static_cast<const Arguments*>(arguments[0]);
  const auto plan = *static_cast<const kernel::GpuPlan*>(arguments[1]);
  const int warps = kernels_of(launch).warps;
  if constexpr (sizeof...(More) == 0) {
    return [=] { return run(launch, warps, [&] { entry(own, plan); }); };
  } else {
    const auto shards = *static_cast<const kernel::GpuShards*>(arguments[2]);
    return [=] { return run(launch, warps, [&] { entry(own, plan, shards); }); };
  }
}

Work model_work(const Launch& launch, void** arguments) {
  const gpu_model::Kernels& kernels = kernels_of(launch);
  if (launch.entry == "bilogp_logp_forward") return work_of(launch, kernels.forward, arguments);
  if (launch.entry == "bilogp_logp_backward") return work_of(launch, kernels.backward, arguments);
  if (launch.entry == "bilogp_logp_partial") return work_of(launch, kernels.partial, arguments);
  if (launch.entry == "bilogp_logp_finish") return work_of(launch, kernels.finish, arguments);
  return work_of(launch, kernels.with_gradient, arguments);
}

const bool is_ready = [] {
  const DeviceModel small{"the host model of a device", 86, 40, 1024, 65536, 65536, 4 << 20, 0, 1};
  all().state.devices = {small, small};
  make_work() = model_work;
  return true;
}();

} // namespace
} // namespace fake
