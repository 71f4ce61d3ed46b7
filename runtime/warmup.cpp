// Runtime::warmup: which kernels a specialization stands for, and making them ready.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cpu/threads.hpp"
#include "runtime/binding.hpp"
#include "runtime/cuda_binding.hpp"
#include "runtime/operators/split_rows.hpp"
#include "runtime/registry.hpp"

namespace bilogp {
namespace {

using Specializations = std::vector<Specialization>;

bool was_loaded(const Specialization& normal, int id) {
  return KernelTable::of_process().find(kernel_key(normal, id)) != nullptr;
}

void report_kernel(WarmupReport& report, const LoadedKernel& kernel, bool loaded_before) {
  report.kernels.push_back(kernel.info);
  if (loaded_before) report.kernels.back().origin = KernelOrigin::loaded;
}

// What calls on a CPU take: the fused operator is two kernels there.
Specializations cpu_kernels(std::span<const Specialization> asked) {
  Specializations own;
  Specializations besides;
  const auto add_besides = [&](const Specialization& spec) {
    if (std::ranges::find(asked, spec, normalised) == asked.end() &&
        std::ranges::find(besides, spec, normalised) == besides.end())
      besides.push_back(spec);
  };
  for (Specialization spec : asked) {
    if (spec.numerics != Numerics::portable)
      throw Error(ErrorKind::unsupported, "native numerics were asked for on a CPU; expected portable");
    if (spec.op == Operator::logp_with_gradient) {
      spec.op = Operator::logp_forward;
      Specialization backward = spec;
      backward.op = Operator::logp_backward;
      add_besides(backward);
    }
    own.push_back(spec);
    const bool cuts_few_rows =
        spec.op == Operator::logp_forward && spec.vocab_size * size_of(spec.logits_dtype) >= smallest_split_row;
    if (!cuts_few_rows) continue;
    add_besides(partial_of(spec));
    add_besides(finish_of(spec));
  }
  own.insert(own.end(), besides.begin(), besides.end());
  return own;
}

WarmupReport warm_cpu(const Runtime& runtime, std::span<const Specialization> asked) {
  WarmupReport report;
  for (const Specialization& spec : cpu_kernels(asked)) {
    const bool before = was_loaded(normalised(spec), Binding::target_id(runtime));
    report_kernel(report, Binding::kernel(runtime, spec), before);
  }
  return report;
}

// A kernel per launch plan, unless one plan was named.
Specializations cuda_kernels(const Specialization& spec, int capability) {
  const std::vector<std::uint8_t> variants = cuda::variants_of(spec.op, capability);
  if (std::ranges::find(variants, spec.variant) == variants.end())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the kernel \"{}\" was asked for; of {} in {} this architecture has {} plans: expected a "
                            "variant it has, or 0 for all",
                            describe(spec), to_string(spec.op), to_string(spec.logits_dtype), variants.size()));
  if (spec.variant != 0) return {normalised(spec)};
  Specializations kernels;
  for (const std::uint8_t variant : variants) {
    Specialization kernel = spec;
    kernel.variant = variant;
    kernels.push_back(normalised(kernel));
  }
  if (spec.op != Operator::logp_with_gradient) return kernels;
  // Few rows take its two halves instead.
  for (const Operator half : {Operator::logp_forward, Operator::logp_backward}) {
    Specialization kernel = spec;
    kernel.op = half;
    for (const Specialization& one : cuda_kernels(kernel, capability)) kernels.push_back(one);
  }
  return kernels;
}

// The devices of the target that this process uses already; the first one where it uses none.
std::vector<int> devices_to_warm(const RuntimeTarget& target) {
  std::vector<int> fitting;
  std::vector<int> active;
  const auto* const exact = std::get_if<cuda::Target>(&target);
  for (int ordinal = 0; ordinal < cuda::device_count(); ++ordinal) {
    const cuda::DeviceFacts facts = cuda::device_facts(ordinal);
    if (exact != nullptr && facts.capability != exact->capability) continue;
    fitting.push_back(ordinal);
    if (facts.is_active) active.push_back(ordinal);
  }
  if (!active.empty() || fitting.empty()) return active;
  return {fitting.front()};
}

// One kernel to make ready, and whether it was before.
struct CudaTask {
  Specialization kernel;
  cuda::Device* device; // null: into the store only
  bool is_loaded;
};

std::vector<CudaTask> cuda_tasks(const Runtime& runtime, std::span<const Specialization> asked) {
  const RuntimeTarget& target = target_of(runtime);
  const std::vector<int> ordinals = devices_to_warm(target);
  std::vector<cuda::Device*> devices;
  for (const int ordinal : ordinals) devices.push_back(&cuda::Device::get(ordinal));
  if (devices.empty()) devices.push_back(nullptr);
  std::vector<CudaTask> tasks;
  for (const Specialization& spec : asked)
    for (cuda::Device* const device : devices) {
      const int capability =
          device != nullptr ? device->target().capability : std::get<cuda::Target>(target).capability;
      const int id = device != nullptr ? id_of_device(device->ordinal()) : Binding::target_id(runtime);
      for (const Specialization& kernel : cuda_kernels(spec, capability)) {
        const auto is_same = [&](const CudaTask& task) { return task.device == device && task.kernel == kernel; };
        tasks.push_back({kernel, device, was_loaded(kernel, id) || std::ranges::any_of(tasks, is_same)});
      }
    }
  return tasks;
}

// NVRTC compiles in as many threads as it is asked from, and its kernels take long: on the threads of CPU calls, whose
// pool the whole process shares.
WarmupReport warm_cuda(const Runtime& runtime, std::span<const Specialization> asked) {
  const std::vector<CudaTask> tasks = cuda_tasks(runtime, asked);
  std::vector<const LoadedKernel*> kernels(tasks.size());
  std::mutex mutex;
  std::exception_ptr failure;
  const auto has_failed = [&] {
    const std::scoped_lock lock(mutex);
    return failure != nullptr;
  };
  const auto work = [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end) && !has_failed(); ++i) {
      try {
        const CudaTask& task = tasks[i];
        kernels[i] = task.device != nullptr
                         ? warm_cuda_kernel(*task.device, task.kernel)
                         : stored_cuda_kernel(runtime, std::get<cuda::Target>(target_of(runtime)), task.kernel);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (failure == nullptr) failure = std::current_exception();
      }
    }
  };
  constexpr int most_threads = 16;
  const cpu::Crew crew{std::min(most_threads, cpu::current_threads()), nullptr};
  cpu::for_ranges(static_cast<std::int64_t>(tasks.size()), 1, crew, work);
  if (failure != nullptr) std::rethrow_exception(failure);
  WarmupReport report;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (kernels[i] != nullptr) report_kernel(report, *kernels[i], tasks[i].is_loaded); // else no plan takes it
  return report;
}

} // namespace

inline namespace v1 {

WarmupReport Runtime::warmup(std::span<const Specialization> specializations) {
  for (const Specialization& spec : specializations) check_specialization(spec);
  const Runtime& runtime = Binding::is_automatic(*this) ? get("cpu") : *this;
  const bool is_cpu = std::holds_alternative<cpu::Target>(target_of(runtime));
  return is_cpu ? warm_cpu(runtime, specializations) : warm_cuda(runtime, specializations);
}

} // namespace v1
} // namespace bilogp
