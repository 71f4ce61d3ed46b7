// One call of an operator on a GPU: what is checked there beyond the checks of all devices, and its launches. The
// operators hand over the same argument structs that the CPU's kernels take.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "bilogp/runtime.hpp"
#include "runtime/backends/cuda/contexts.hpp"
#include "runtime/backends/cuda/devices.hpp"
#include "runtime/kernel_arguments.hpp"
#include "runtime/operators/row_space.hpp"

namespace bilogp {

struct NamedTensor {
  std::string_view name;
  const TensorView* tensor;
};

enum class BadIds : std::uint8_t { counted, counted_before };

class GpuCall {
public:
  // Throws Error(unsupported) where the runtime does not serve that device.
  GpuCall(const Runtime& runtime, const Device& device, const LogpOptions& options, void* stream);

  static bool is_meant(const Device& device) noexcept { return device.type == DeviceType::cuda; }

  // Every tensor lies at a multiple of its element's size; with validate on, it also lies in this device's memory, and
  // the stream is the device's.
  void check_tensors(std::initializer_list<NamedTensor> tensors) const;
  // With validate on: as check::target_ids, on a copy; waits for the stream.
  void check_target_ids(const TensorView& ids, int leading_rank, std::int64_t vocab_size) const;

  // Whether logp_with_gradient is to be two launches, with row states between them in scratch of the stream.
  [[nodiscard]] bool splits_passes(const cuda::LaunchShape& shape) const {
    return options_.plan == cuda::automatic_plan && cuda::splits_passes(shape, device_.limits());
  }
  // Held until both are queued.
  void take_scratch(std::optional<cuda::ScratchLease>& lease) const { lease.emplace(device_.scratch(), stream_); }

  // What a shape has of every operator's launch, beside what the operator knows: columns, alignment.
  template<class Arguments>
  static const cuda::LaunchShape& complete(cuda::LaunchShape& shape, const Specialization& spec,
                                           const Arguments& arguments, const RowSpace& space) {
    shape.op = spec.op;
    shape.logits_dtype = spec.logits_dtype;
    shape.numerics = spec.numerics;
    shape.rows = space.rows_per_launch();
    shape.has_row_temperatures = arguments.options.temperature_rows != nullptr;
    return shape;
  }

  // Queues one launch, of the rows of `space`.
  template<class Arguments>
  void launch(const Specialization& spec, cuda::LaunchShape& shape, Arguments& arguments, const RowSpace& space,
              std::int64_t launch, const kernel::GpuShards* shards = nullptr, BadIds counting = BadIds::counted) const {
    complete(shape, spec, arguments, space);
    arguments.options.errors = counting == BadIds::counted ? errors_ : nullptr;
    start(spec, shape, &arguments, launch * shape.rows, shards);
  }

private:
  void start(const Specialization& spec, const cuda::LaunchShape& shape, void* arguments, std::int64_t first_row,
             const kernel::GpuShards* shards) const;
  bool start_planned(const Specialization& spec, const cuda::LaunchShape& shape, void* arguments,
                     std::int64_t first_row, const kernel::GpuShards* shards) const;

  cuda::Device& device_;
  const cuda::CurrentContext current_;
  cuda::Stream stream_;
  const LogpOptions& options_;
  kernel::i64* errors_;
};

// The largest power of two, at most 256, that divides the address of every row.
inline int row_alignment(const void* base, const kernel::RowStrides& strides, std::int64_t element_bytes) {
  constexpr std::uint64_t enough = 256;
  const auto bits = reinterpret_cast<std::uint64_t>(base) |
                    static_cast<std::uint64_t>((strides.outer | strides.inner) * element_bytes) | enough;
  return 1 << std::countr_zero(bits);
}

} // namespace bilogp
