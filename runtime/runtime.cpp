#include "bilogp/runtime.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "bilogp/version.hpp"
#include "runtime/backends/cpu/threads.hpp"
#include "runtime/binding.hpp"
#include "runtime/kernel_provider.hpp"
#include "runtime/operators/split_rows.hpp"

namespace bilogp {
namespace {

// All Runtimes of the process, and the targets they stand for; never destroyed.
struct Registry {
  std::mutex mutex;
  std::map<std::string, Runtime*, std::less<>> by_name; // as asked for, and as resolved
  std::deque<cpu::Target> targets;                      // by target id
};

Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

constexpr int automatic_target = -1;

[[noreturn]] void unknown_runtime(std::string_view name) {
  std::string known = "auto";
  for (const std::string& target : Runtime::known_targets()) known += ", " + target;
  const bool is_gpu = name.starts_with("cuda") || name.starts_with("hip");
  throw Error(is_gpu ? ErrorKind::unsupported : ErrorKind::invalid_argument,
              fmt::format("the target \"{}\" is {}; expected one of {}", name,
                          is_gpu ? "not in this version of bilogp, which has the cpu back end only" : "unknown",
                          known));
}

// What a forward of few rows calls besides its own kernel, each once in the list.
void append_kernels_of_few_rows(const Specialization& forward, std::vector<Specialization>& list) {
  if (forward.op != Operator::logp_forward || forward.vocab_size * size_of(forward.logits_dtype) < smallest_split_row)
    return;
  for (const Specialization& spec : {partial_of(forward), finish_of(forward)})
    if (std::ranges::find(list, spec, normalised) == list.end()) list.push_back(spec);
}

struct ErrorWords {
  std::mutex mutex;
  std::int64_t words[4] = {};
};

ErrorWords& error_words() {
  static auto* words = new ErrorWords;
  return *words;
}

} // namespace

void record_target_errors(const Device&, const std::int64_t words[4]) noexcept {
  ErrorWords& all = error_words();
  const std::scoped_lock lock(all.mutex);
  merge_target_errors(all.words, words);
}

inline namespace v1 {

std::string_view to_string(KernelOrigin origin) noexcept {
  switch (origin) {
  case KernelOrigin::compiled:
    return "compiled";
  case KernelOrigin::store:
    return "store";
  case KernelOrigin::loaded:
    return "loaded";
  }
  return "unknown";
}

std::string_view version() noexcept {
  return BILOGP_VERSION;
}

std::string_view contract_id(Numerics numerics) {
  if (numerics == Numerics::portable) return "bilogp.canon-1.portable";
  throw Error(ErrorKind::unsupported, "native numerics have no contract id on a CPU; expected portable");
}

Runtime::Runtime(std::string target, int target_id, bool runnable)
    : target_(std::move(target)), target_id_(target_id), runnable_(runnable) {}
Runtime::~Runtime() = default;

std::string_view Runtime::target() const noexcept {
  return target_;
}
bool Runtime::runnable() const noexcept {
  return runnable_;
}

Runtime& Runtime::get(std::string_view name) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  if (const auto found = all.by_name.find(name); found != all.by_name.end()) return *found->second;
  Runtime* runtime = nullptr;
  if (name == "auto") {
    runtime = new Runtime("auto", automatic_target, true);
  } else if (name == "cpu" || name.starts_with("cpu:")) {
    const cpu::Target target = cpu::resolve_target(name == "cpu" ? "native" : name.substr(4));
    const std::string resolved = "cpu:" + target.name;
    if (const auto found = all.by_name.find(resolved); found != all.by_name.end()) {
      runtime = found->second;
    } else {
      runtime = new Runtime(resolved, static_cast<int>(all.targets.size()), cpu::runs_here(target));
      all.targets.push_back(target);
      all.by_name.emplace(resolved, runtime);
    }
  } else {
    unknown_runtime(name);
  }
  all.by_name.emplace(std::string(name), runtime);
  return *runtime;
}

Runtime& Binding::launchable(Runtime& runtime, const Device& device) {
  if (device.type != DeviceType::cpu)
    throw Error(ErrorKind::unsupported, fmt::format("the logits are on a {} device; this version of bilogp has the cpu "
                                                    "back end only, so move them to the CPU",
                                                    device.type == DeviceType::cuda ? "cuda" : "hip"));
  if (is_automatic(runtime)) {
    static Runtime& own = Runtime::get("cpu");
    return own;
  }
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
  const cpu::Target* target = nullptr;
  {
    const std::scoped_lock lock(registry().mutex);
    target = &registry().targets[static_cast<std::size_t>(runtime.target_id_)];
  }
  return KernelTable::of_process().find_or_make(key,
                                                [&] { return provide_cpu_kernel(spec, *target, runtime.runnable()); });
}

std::vector<std::string> Runtime::known_targets() {
  std::vector<std::string> names = {"cpu"};
  for (const std::string& level : cpu::known_levels()) names.push_back("cpu:" + level);
  return names;
}

WarmupReport Runtime::warmup(std::span<const Specialization> asked) {
  const Runtime& runtime = Binding::is_automatic(*this) ? get("cpu") : *this;
  std::vector<Specialization> specializations(asked.begin(), asked.end());
  for (const Specialization& spec : asked) {
    check_specialization(spec);
    if (spec.numerics != Numerics::portable)
      throw Error(ErrorKind::unsupported, "native numerics were asked for on a CPU; expected portable");
    append_kernels_of_few_rows(spec, specializations);
  }
  WarmupReport report;
  for (const Specialization& spec : specializations) {
    const KernelKey key = kernel_key(normalised(spec), runtime.target_id_);
    const bool was_loaded = KernelTable::of_process().find(key) != nullptr;
    KernelInfo info = Binding::kernel(runtime, spec).info;
    if (was_loaded) info.origin = KernelOrigin::loaded;
    report.kernels.push_back(std::move(info));
  }
  return report;
}

TargetErrors Runtime::take_errors(Device device) {
  if (device.type != DeviceType::cpu)
    throw Error(ErrorKind::unsupported, "errors of a GPU were asked for; this version has the cpu back end only");
  ErrorWords& words = error_words();
  const std::scoped_lock lock(words.mutex);
  if (words.words[0] == 0) return {};
  return {std::exchange(words.words[0], 0), words.words[1], words.words[2]};
}

std::vector<KernelInfo> Runtime::loaded_kernels() {
  std::vector<KernelInfo> infos;
  for (const LoadedKernel* kernel : KernelTable::of_process().all()) infos.push_back(kernel->info);
  return infos;
}

void Runtime::set_num_threads(int threads) {
  if (threads < 0 || threads > cpu::largest_thread_count)
    throw Error(ErrorKind::invalid_argument, fmt::format("the thread count is {}; expected 1 to {}, or 0 for the "
                                                         "default",
                                                         threads, +cpu::largest_thread_count));
  cpu::set_current_threads(threads);
}

int Runtime::num_threads() {
  return cpu::current_threads();
}

} // namespace v1
} // namespace bilogp
