#include "runtime/kernel_provider.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "cache/store.hpp"
#include "runtime/backends/cpu/compiler.hpp"
#include "runtime/backends/cpu/image.hpp"
#include "runtime/backends/cpu/kernels.hpp"
#include "runtime/backends/cuda/kernels.hpp"
#include "runtime/backends/cuda/module.hpp"
#include "runtime/backends/cuda/nvrtc.hpp"
#include "runtime/log.hpp"

namespace bilogp {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

cache::Store& store() {
  static std::once_flag once;
  std::call_once(once, [] { cache::set_process_warn(warn); });
  return cache::process_store();
}

// A kernel is never unloaded: its image stays mapped to the end of the process, static destruction included.
void keep(std::unique_ptr<const cpu::MappedImage> image) {
  static std::mutex mutex;
  static auto* images = new std::vector<std::unique_ptr<const cpu::MappedImage>>;
  const std::scoped_lock lock(mutex);
  images->push_back(std::move(image));
}

class CpuKernel {
public:
  static constexpr const char* backend = "cpu";

  CpuKernel(const Specialization& spec, const cpu::Target& target, bool runnable)
      : entry_(cpu::entry_name(spec)), runnable_(runnable), request_(cpu::compile_request(spec, target)) {}

  [[nodiscard]] cache::Key key() const { return cpu::store_key(request_); }
  [[nodiscard]] std::string target() const { return request_.target.name; }
  [[nodiscard]] static std::string compiler() { return std::string(cpu::compiler_version()); }
  [[nodiscard]] std::string compile() const { return cpu::compile(request_).image; }

  void* load(std::string_view image) {
    if (!runnable_) {
      cpu::decode_image(image);
      return nullptr;
    }
    auto mapped = std::make_unique<cpu::MappedImage>(image);
    void* entry = mapped->entry(entry_);
    if (entry == nullptr) throw Error(ErrorKind::cache, fmt::format("a kernel image lacks the entry {}", entry_));
    keep(std::move(mapped));
    return entry;
  }

private:
  const std::string entry_;
  const bool runnable_;
  const cpu::CompileRequest request_;
};

class CudaKernel {
public:
  static constexpr const char* backend = "cuda";

  CudaKernel(const Specialization& spec, const cuda::Target& target, cuda::Device* device)
      : device_(device), request_(cuda::compile_request(spec, target)) {}

  [[nodiscard]] cache::Key key() const { return cuda::store_key(request_); }
  [[nodiscard]] std::string target() const { return request_.target.name; }
  [[nodiscard]] static std::string compiler() { return "NVRTC " + cuda::nvrtc().version; }
  [[nodiscard]] std::string compile() const { return cuda::compile(request_).image; }

  void* load(std::string_view image) {
    if (device_ != nullptr) return cuda::load_function(*device_, image, request_.entry);
    cuda::check_image(image);
    return nullptr;
  }

private:
  cuda::Device* const device_;
  const cuda::CompileRequest request_;
};

// One kernel on its way into the process. `Kernel` says how its back end compiles and loads.
template<class Kernel> class Provision {
public:
  Provision(const Specialization& spec, Kernel kernel) : kernel_(std::move(kernel)), key_(kernel_.key()) {
    info_.specialization = spec;
    info_.target = fmt::format("{}:{}", Kernel::backend, kernel_.target());
  }

  LoadedKernel provide() {
    if (std::optional<LoadedKernel> kernel = from_store()) return *std::move(kernel);
    const cache::KeyLock lock = store().lock(key_);
    // Another process may have compiled it while this one waited.
    if (std::optional<LoadedKernel> kernel = from_store()) return *std::move(kernel);
    return compile();
  }

private:
  LoadedKernel load(std::string_view image) {
    LoadedKernel kernel;
    kernel.entry = kernel_.load(image);
    info_.image_bytes = static_cast<std::int64_t>(image.size());
    info_.seconds = seconds_since(start_);
    kernel.info = info_;
    return kernel;
  }

  std::optional<LoadedKernel> from_store() {
    start_ = Clock::now();
    const std::optional<cache::Entry> entry = store().get(key_);
    if (!entry) return std::nullopt;
    info_.origin = KernelOrigin::store;
    info_.compiler = entry->metadata.compiler;
    try {
      return load(entry->payload);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::cache) throw;
      store().erase(key_); // its checksum held, but it does not load: compile again
      return std::nullopt;
    }
  }

  LoadedKernel compile() {
    start_ = Clock::now();
    const std::string image = kernel_.compile();
    info_.origin = KernelOrigin::compiled;
    info_.compiler = Kernel::compiler();
    LoadedKernel kernel = load_fresh(image);
    cache::Metadata metadata;
    metadata.backend = Kernel::backend;
    metadata.target = kernel_.target();
    metadata.compiler = info_.compiler;
    metadata.description = describe(info_.specialization);
    metadata.compile_microseconds = static_cast<std::int64_t>(kernel.info.seconds * 1e6);
    store().put(key_, metadata, image);
    return kernel;
  }

  // An image that was made a moment ago and is refused all the same is no matter of the store.
  LoadedKernel load_fresh(const std::string& image) {
    try {
      return load(image);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::cache) throw;
      throw Error(ErrorKind::compile_failed,
                  fmt::format("{}, though {} has just made it; use a compiler that is no newer than the driver",
                              error.what(), info_.compiler));
    }
  }

  Kernel kernel_;
  const cache::Key key_;
  KernelInfo info_;
  Clock::time_point start_;
};

} // namespace

LoadedKernel provide_cpu_kernel(const Specialization& spec, const cpu::Target& target, bool runnable) {
  return Provision(spec, CpuKernel(spec, target, runnable)).provide();
}

LoadedKernel provide_cuda_kernel(const Specialization& spec, const cuda::Target& target, cuda::Device* device) {
  return Provision(spec, CudaKernel(spec, target, device)).provide();
}

} // namespace bilogp
