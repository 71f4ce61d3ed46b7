#include "runtime/cuda_binding.hpp"

#include <atomic>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cuda/compiler.hpp"
#include "runtime/backends/cuda/pointers.hpp"
#include "runtime/binding.hpp"
#include "runtime/kernel_provider.hpp"
#include "runtime/log.hpp"

namespace bilogp {
namespace {

const LoadedKernel* made(KernelKey key, const Specialization& normal, const cuda::Target& target,
                         cuda::Device* device) {
  try {
    return &KernelTable::of_process().find_or_make(key, [&] { return provide_cuda_kernel(normal, target, device); });
  } catch (const cuda::ClustersNotCompiled& error) {
    static std::atomic<bool> is_said = false; // what is told may call us again
    if (!is_said.exchange(true)) warn(fmt::format("few rows and gradients take slower kernels: {}", error.what()));
    constexpr int smallest_cluster = 2;
    if (device != nullptr) device->refuse_clusters(smallest_cluster);
    return nullptr;
  }
}

} // namespace

cuda::Device& cuda_device(const Runtime& runtime, const Device& device) {
  constexpr std::string_view prefix = "cuda";
  const std::string_view target = runtime.target();
  if (!Binding::is_automatic(runtime) && !target.starts_with(prefix))
    throw Error(
        ErrorKind::unsupported,
        fmt::format("the runtime's target is {}, but the tensors are on cuda:{}; use Runtime::get(\"cuda\"), or "
                    "\"auto\", which follows the tensors",
                    target, device.index));
  cuda::Device& found = cuda::Device::get(device.index);
  const bool is_named = target.size() > prefix.size() && target.starts_with(prefix);
  if (is_named && target.substr(prefix.size() + 1) != found.target().name)
    throw Error(ErrorKind::unsupported, fmt::format("the runtime's target is {}, but cuda:{} is an {}; use "
                                                    "Runtime::get(\"cuda\")",
                                                    target, device.index, found.target().name));
  return found;
}

const LoadedKernel* warm_cuda_kernel(cuda::Device& device, const Specialization& normal) {
  return made(kernel_key(normal, id_of_device(device.ordinal())), normal, device.target(), &device);
}

const LoadedKernel* cuda_kernel(cuda::Device& device, const Specialization& normal, cuda::Stream stream) {
  const KernelKey key = kernel_key(normal, id_of_device(device.ordinal()));
  if (const LoadedKernel* loaded = KernelTable::of_process().find(key)) return loaded;
  if (cuda::is_capturing(device, stream))
    throw Error(ErrorKind::device,
                fmt::format("the kernel \"{}\" is not loaded yet and its first call came while a stream is being "
                            "captured; call Runtime::warmup for it, or once before the capture",
                            describe(normal)));
  return made(key, normal, device.target(), &device);
}

const LoadedKernel* stored_cuda_kernel(const Runtime& runtime, const cuda::Target& target,
                                       const Specialization& normal) {
  return made(kernel_key(normal, Binding::target_id(runtime)), normal, target, nullptr);
}

} // namespace bilogp
