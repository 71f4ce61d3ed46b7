#include "bilogp/runtime.hpp"

#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "bilogp/version.hpp"
#include "runtime/backends/cpu/threads.hpp"
#include "runtime/binding.hpp"
#include "runtime/cuda_binding.hpp"

namespace bilogp {
namespace {

struct ErrorWords {
  std::mutex mutex;
  std::int64_t words[4] = {};
};

ErrorWords& error_words() {
  static auto* words = new ErrorWords;
  return *words;
}

} // namespace

void record_target_errors(const std::int64_t words[4]) noexcept {
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
  throw Error(ErrorKind::unsupported, "native numerics have a contract id per target; name one, as in cuda:sm_90a");
}

std::string contract_id(Numerics numerics, std::string_view target) {
  if (numerics == Numerics::portable) return std::string(contract_id());
  constexpr std::string_view prefix = "cuda:";
  if (!target.starts_with(prefix))
    throw Error(ErrorKind::unsupported,
                fmt::format("native numerics have no contract id on {}; expected portable, or a GPU's target", target));
  return fmt::format("bilogp.canon-1.native.{}", target.substr(prefix.size()));
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

TargetErrors Runtime::take_errors(Device device) {
  if (device.type == DeviceType::cuda) {
    std::int64_t words[3] = {};
    cuda_device(*this, device).take_errors(words);
    if (words[0] == 0) return {};
    return {words[0], words[1], words[2]};
  }
  if (device.type != DeviceType::cpu)
    throw Error(ErrorKind::unsupported, "errors of a hip device were asked for; this version has the cpu and cuda back "
                                        "ends");
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
