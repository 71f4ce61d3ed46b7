#include "runtime/kernel_provider.hpp"

#include <chrono>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "cache/store.hpp"
#include "runtime/backends/cpu/compiler.hpp"
#include "runtime/backends/cpu/image.hpp"
#include "runtime/backends/cpu/kernels.hpp"
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

class CpuProvision {
public:
  CpuProvision(const Specialization& spec, const cpu::Target& target, bool runnable)
      : spec_(spec), runnable_(runnable), request_(cpu::compile_request(spec, target)), key_(cpu::store_key(request_)) {
    info_.specialization = spec;
    info_.target = "cpu:" + target.name;
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
    if (runnable_) {
      // Leaked: a kernel is never unloaded.
      const auto* mapped = new cpu::MappedImage(image);
      kernel.entry = mapped->entry(cpu::entry_name(spec_));
      if (kernel.entry == nullptr)
        throw Error(ErrorKind::cache, fmt::format("a kernel image lacks the entry {}", cpu::entry_name(spec_)));
    } else {
      cpu::decode_image(image);
    }
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
      store().erase(key_); // its checksum held, but it is no image: compile again
      return std::nullopt;
    }
  }

  LoadedKernel compile() {
    start_ = Clock::now();
    const cpu::CompiledImage compiled = cpu::compile(request_);
    info_.origin = KernelOrigin::compiled;
    info_.compiler = cpu::compiler_version();
    LoadedKernel kernel = load(compiled.image);
    cache::Metadata metadata;
    metadata.backend = "cpu";
    metadata.target = request_.target.name;
    metadata.compiler = info_.compiler;
    metadata.description = describe(spec_);
    metadata.compile_microseconds = static_cast<std::int64_t>(kernel.info.seconds * 1e6);
    store().put(key_, metadata, compiled.image);
    return kernel;
  }

  const Specialization spec_;
  const bool runnable_;
  const cpu::CompileRequest request_;
  const cache::Key key_;
  KernelInfo info_;
  Clock::time_point start_;
};

} // namespace

LoadedKernel provide_cpu_kernel(const Specialization& spec, const cpu::Target& target, bool runnable) {
  return CpuProvision(spec, target, runnable).provide();
}

} // namespace bilogp
