// Runtime::warmup: which kernels a specialization stands for, and making them ready.
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

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
  if (spec.variant != 0) return {normalised(spec)};
  Specializations kernels;
  for (const std::uint8_t variant : cuda::variants_of(spec.op, spec.logits_dtype, capability)) {
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

WarmupReport warm_cuda(const Runtime& runtime, std::span<const Specialization> asked) {
  const RuntimeTarget& target = target_of(runtime);
  const std::vector<int> devices = devices_to_warm(target);
  WarmupReport report;
  for (const Specialization& spec : asked) {
    for (const int ordinal : devices) {
      cuda::Device& device = cuda::Device::get(ordinal);
      for (const Specialization& kernel : cuda_kernels(spec, device.target().capability)) {
        const bool before = was_loaded(kernel, id_of_device(ordinal));
        report_kernel(report, warm_cuda_kernel(device, kernel), before);
      }
    }
    if (!devices.empty()) continue;
    const auto& exact = std::get<cuda::Target>(target);
    for (const Specialization& kernel : cuda_kernels(spec, exact.capability)) {
      const bool before = was_loaded(kernel, Binding::target_id(runtime));
      report_kernel(report, stored_cuda_kernel(runtime, exact, kernel), before);
    }
  }
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
