#include "runtime/registry.hpp"

#include <deque>
#include <map>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/backends/cuda/devices.hpp"
#include "runtime/binding.hpp"
#include "runtime/kernel_provider.hpp"

namespace bilogp {
namespace {

// Never destroyed. Kernels are keyed by a runtime's number here, those loaded into a CUDA device by the device's.
struct Registry {
  std::mutex mutex;
  std::map<std::string, Runtime*, std::less<>> by_name; // as asked for, and as resolved
  std::deque<RuntimeTarget> targets;                    // by target id
};

Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

constexpr int automatic_target = -1;

[[noreturn]] void unknown_runtime(std::string_view name) {
  const bool is_later = name.starts_with("hip");
  throw Error(is_later ? ErrorKind::unsupported : ErrorKind::invalid_argument,
              fmt::format("the target \"{}\" is {}; expected one of auto, cuda, {}", name,
                          is_later ? "not in this version of bilogp, which has the cpu and cuda back ends" : "unknown",
                          fmt::join(Runtime::known_targets(), ", ")));
}

struct Resolved {
  std::string name;
  RuntimeTarget target;
  bool runnable = false;
};

Resolved resolve_cpu(std::string_view level) {
  const cpu::Target target = cpu::resolve_target(level);
  return {"cpu:" + target.name, target, cpu::runs_here(target)};
}

bool some_device_is(const cuda::Target& target) {
  for (int ordinal = 0; ordinal < cuda::device_count(); ++ordinal)
    if (cuda::device_facts(ordinal).capability == target.capability) return true;
  return false;
}

// The devices of this machine: one target, where all are alike.
Resolved resolve_cuda_devices() {
  std::string why;
  const int count = cuda::device_count(&why);
  if (count == 0)
    throw Error(ErrorKind::unsupported,
                fmt::format("{}; to compile only, name an architecture, as in cuda:sm_90a",
                            why.empty() ? "the CUDA driver sees no device: check CUDA_VISIBLE_DEVICES" : why));
  const cuda::Target first = cuda::target_of_capability(cuda::device_facts(0).capability);
  for (int ordinal = 1; ordinal < count; ++ordinal)
    if (cuda::device_facts(ordinal).capability != first.capability) return {"cuda", EveryCudaDevice{}, true};
  return {"cuda:" + first.name, first, true};
}

Resolved resolve(std::string_view name) {
  if (name == "cpu") return resolve_cpu("native");
  if (name.starts_with("cpu:")) return resolve_cpu(name.substr(4));
  if (name == "cuda") return resolve_cuda_devices();
  if (name.starts_with("cuda:")) {
    const cuda::Target target = cuda::resolve_target(name.substr(5));
    return {"cuda:" + target.name, target, some_device_is(target)};
  }
  unknown_runtime(name);
}

} // namespace

const RuntimeTarget& target_of(const Runtime& runtime) {
  const std::scoped_lock lock(registry().mutex);
  return registry().targets[static_cast<std::size_t>(Binding::target_id(runtime))];
}

inline namespace v1 {

Runtime& Runtime::get(std::string_view name) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  if (const auto found = all.by_name.find(name); found != all.by_name.end()) return *found->second;
  Runtime* runtime = nullptr;
  if (name == "auto") {
    runtime = new Runtime("auto", automatic_target, true);
  } else {
    Resolved resolved = resolve(name);
    if (const auto found = all.by_name.find(resolved.name); found != all.by_name.end()) {
      runtime = found->second;
    } else {
      runtime = new Runtime(resolved.name, static_cast<int>(all.targets.size()), resolved.runnable);
      all.targets.push_back(std::move(resolved.target));
      all.by_name.emplace(resolved.name, runtime);
    }
  }
  all.by_name.emplace(std::string(name), runtime);
  return *runtime;
}

std::vector<std::string> Runtime::known_targets() {
  std::vector<std::string> names = {"cpu"};
  for (const std::string& level : cpu::known_levels()) names.push_back("cpu:" + level);
  for (const std::string& architecture : cuda::known_targets()) names.push_back("cuda:" + architecture);
  return names;
}

Runtime& Binding::launchable(Runtime& runtime, const Device& device) {
  if (device.type != DeviceType::cpu)
    throw Error(ErrorKind::unsupported, "the tensors are on a hip device; this version of bilogp has the cpu and cuda "
                                        "back ends, so move them to one of these");
  if (is_automatic(runtime)) {
    static Runtime& own = Runtime::get("cpu");
    return own;
  }
  if (!runtime.target().starts_with("cpu"))
    throw Error(ErrorKind::unsupported,
                fmt::format("the runtime's target is {}, but the tensors are on the cpu; use Runtime::get(\"cpu\"), or "
                            "\"auto\", which follows the tensors",
                            runtime.target()));
  if (!runtime.runnable()) {
    std::string missing;
    cpu::runs_here(cpu::resolve_target(runtime.target().substr(4)), &missing);
    throw Error(ErrorKind::unsupported, fmt::format("the target {} needs {}, which this machine lacks (it has {}); use "
                                                    "Runtime::get(\"cpu\") for its own level",
                                                    runtime.target(), missing, cpu::host_features()));
  }
  return runtime;
}

const LoadedKernel& Binding::load(const Runtime& runtime, const Specialization& spec, KernelKey key) {
  const auto& target = std::get<cpu::Target>(target_of(runtime));
  return KernelTable::of_process().find_or_make(key,
                                                [&] { return provide_cpu_kernel(spec, target, runtime.runnable()); });
}

} // namespace v1
} // namespace bilogp
