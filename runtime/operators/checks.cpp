#include "runtime/operators/checks.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cpu/threads.hpp"
#include "runtime/kernel_key.hpp"

namespace bilogp::check {
namespace {

template<class... Parts> [[noreturn]] void refuse(ErrorKind kind, fmt::format_string<Parts...> text, Parts&&... parts) {
  throw Error(kind, fmt::format(text, std::forward<Parts>(parts)...));
}

std::string shape_text(const std::int64_t* shape, int rank, std::int64_t tail = -1) {
  std::string text = "[";
  for (int d = 0; d < rank; ++d) text += fmt::format("{}{}", d > 0 ? ", " : "", shape[d]);
  if (tail >= 0) text += fmt::format("{}{}", rank > 0 ? ", " : "", tail);
  return text + "]";
}

// Whether all numbers are so small that nothing made of them can overflow: the usual call needs no more than this.
bool are_small(const TensorView& tensor) noexcept {
  if (tensor.rank < 0 || tensor.rank > 3) return false;
  std::uint64_t all = 0;
  for (int d = 0; d < tensor.rank; ++d)
    all |= static_cast<std::uint64_t>(tensor.shape[d]) | static_cast<std::uint64_t>(tensor.strides[d]);
  return all < (std::uint64_t{1} << 19);
}

// What is computed with a tensor's numbers later must not overflow, whatever they are.
void numbers(std::string_view name, const TensorView& tensor) {
  if (are_small(tensor)) return;
  if (tensor.rank < 0 || tensor.rank > TensorView::max_rank)
    refuse(ErrorKind::invalid_argument, "{} has {} dimensions; expected at most {}", name, tensor.rank,
           +TensorView::max_rank);
  std::int64_t bytes = size_of(tensor.dtype);
  std::int64_t reach = bytes; // bytes from the first to the last, in the worst order of signs
  bool fits = true;
  bool empty = false;
  for (int d = 0; d < tensor.rank; ++d) {
    const std::int64_t extent = tensor.shape[d];
    if (extent < 0)
      refuse(ErrorKind::invalid_argument, "{} has the shape {}; expected extents of 0 or more", name,
             shape_text(tensor.shape, tensor.rank));
    empty = empty || extent == 0;
    std::int64_t way = 0;
    fits = fits && !__builtin_mul_overflow(bytes, extent > 0 ? extent : 1, &bytes) &&
           !__builtin_mul_overflow(extent > 0 ? extent - 1 : 0, tensor.strides[d], &way) &&
           !__builtin_mul_overflow(way, size_of(tensor.dtype), &way) && way != INT64_MIN &&
           !__builtin_add_overflow(reach, way < 0 ? -way : way, &reach);
  }
  if (!fits && !empty)
    refuse(ErrorKind::invalid_argument,
           "{} has the shape {}, beyond what 64 bits address; expected its real shape and "
           "strides",
           name, shape_text(tensor.shape, tensor.rank));
}

void not_null(std::string_view name, const TensorView& tensor) {
  if (tensor.data == nullptr && tensor.elements() > 0)
    refuse(ErrorKind::invalid_argument, "{} is a null pointer with the shape {}; expected memory for its {} elements",
           name, shape_text(tensor.shape, tensor.rank), tensor.elements());
}

struct Extent { // bytes that a tensor touches, relative to its pointer
  std::uintptr_t begin, end;
};

Extent extent_of(const TensorView& tensor) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (int d = 0; d < tensor.rank; ++d) {
    const std::int64_t reach = (tensor.shape[d] - 1) * tensor.strides[d];
    (reach < 0 ? low : high) += reach;
  }
  const auto base = reinterpret_cast<std::uintptr_t>(tensor.data);
  const std::int64_t size = size_of(tensor.dtype);
  return {base + static_cast<std::uintptr_t>(low * size), base + static_cast<std::uintptr_t>((high + 1) * size)};
}

std::int64_t id_at(const TensorView& ids, std::int64_t offset) {
  if (ids.dtype == DType::int64) {
    std::int64_t id = 0;
    std::memcpy(&id, static_cast<const char*>(ids.data) + offset * 8, sizeof id);
    return id;
  }
  std::int32_t id = 0;
  std::memcpy(&id, static_cast<const char*>(ids.data) + offset * 4, sizeof id);
  return id;
}

// binary32 nearest to a finite value of its normal range, ties to even, by integers: the caller may have set any
// rounding mode, and a conversion would follow it.
float nearest_float(double value) {
  constexpr int dropped_bits = 29;
  auto bits = std::bit_cast<std::uint64_t>(value);
  constexpr std::uint64_t mask = (std::uint64_t{1} << dropped_bits) - 1;
  bits += (mask >> 1) + ((bits >> dropped_bits) & 1U);
  return static_cast<float>(std::bit_cast<double>(bits & ~mask)); // exact
}

} // namespace

void logits(std::string_view name, const TensorView& tensor) {
  numbers(name, tensor);
  if (tensor.rank < 2)
    refuse(ErrorKind::invalid_argument, "{} has {} dimension(s); expected at least 2, [..., V]", name, tensor.rank);
  if (tensor.dtype != DType::float32 && tensor.dtype != DType::float16 && tensor.dtype != DType::bfloat16)
    refuse(ErrorKind::invalid_argument, "{} is {}; expected float32, float16 or bfloat16", name,
           to_string(tensor.dtype));
  const std::int64_t columns = tensor.shape[tensor.rank - 1];
  if (columns < 1 || columns > largest_vocab)
    refuse(ErrorKind::invalid_argument, "{} has a vocabulary of {} columns; expected 1 to {}", name, columns,
           largest_vocab);
  last_stride_one(name, tensor);
  not_null(name, tensor);
}

void dtype(std::string_view name, const TensorView& tensor, DType expected) {
  if (tensor.dtype != expected)
    refuse(ErrorKind::invalid_argument, "{} is {}; expected {}", name, to_string(tensor.dtype), to_string(expected));
}

void id_dtype(std::string_view name, const TensorView& tensor) {
  if (tensor.dtype != DType::int32 && tensor.dtype != DType::int64)
    refuse(ErrorKind::invalid_argument, "{} is {}; expected int32 or int64", name, to_string(tensor.dtype));
}

void shape(std::string_view name, const TensorView& tensor, const TensorView& like, int leading_rank,
           std::int64_t tail) {
  bool same = tensor.rank == leading_rank + (tail >= 0 ? 1 : 0);
  for (int d = 0; d < leading_rank && same; ++d) same = tensor.shape[d] == like.shape[d];
  if (same && tail >= 0) same = tensor.shape[leading_rank] == tail;
  if (!same)
    refuse(ErrorKind::invalid_argument, "{} has the shape {}; expected {}", name, shape_text(tensor.shape, tensor.rank),
           shape_text(like.shape, leading_rank, tail));
}

void memory(std::string_view name, const TensorView& tensor) {
  numbers(name, tensor);
  not_null(name, tensor);
}

void row_input(std::string_view name, const TensorView& tensor, const TensorView& like, int leading_rank,
               std::int64_t tail) {
  shape(name, tensor, like, leading_rank, tail);
  memory(name, tensor);
  same_device(name, tensor, like);
}

void distinct_elements(std::string_view name, const TensorView& tensor) {
  for (int d = 0; d < tensor.rank; ++d)
    if (tensor.strides[d] == 0 && tensor.shape[d] > 1)
      refuse(ErrorKind::invalid_argument,
             "{} is an output with stride 0 in dimension {} of extent {}; expected a place for every element", name, d,
             tensor.shape[d]);
}

void last_stride_one(std::string_view name, const TensorView& tensor) {
  const int last = tensor.rank - 1;
  if (tensor.shape[last] > 1 && tensor.strides[last] != 1)
    refuse(ErrorKind::invalid_argument,
           "{} has the stride {} in its last dimension; expected 1 (make a contiguous copy, or transpose back)", name,
           tensor.strides[last]);
}

void same_device(std::string_view name, const TensorView& tensor, const TensorView& reference) {
  if (tensor.device == reference.device) return;
  const auto text = [](const Device& device) {
    const char* type = device.type == DeviceType::cpu ? "cpu" : device.type == DeviceType::cuda ? "cuda" : "hip";
    return device.type == DeviceType::cpu ? std::string(type) : fmt::format("{}:{}", type, device.index);
  };
  refuse(ErrorKind::invalid_argument, "{} is on {}, but the logits are on {}; expected all tensors on one device", name,
         text(tensor.device), text(reference.device));
}

void no_overlap(std::string_view name, const TensorView& tensor, std::string_view other_name, const TensorView& other) {
  if (tensor.elements() == 0 || other.elements() == 0) return;
  const Extent a = extent_of(tensor);
  const Extent b = extent_of(other);
  if (a.begin < b.end && b.begin < a.end)
    refuse(ErrorKind::invalid_argument, "{} shares memory with {}; expected memory of its own", name, other_name);
}

void gradient(const TensorView& grad, const TensorView& logits, bool in_place) {
  const int leading = logits.rank - 1;
  dtype("grad_logits", grad, logits.dtype);
  shape("grad_logits", grad, logits, leading, logits.shape[leading]);
  last_stride_one("grad_logits", grad);
  memory("grad_logits", grad);
  same_device("grad_logits", grad, logits);
  distinct_elements("grad_logits", grad);
  if (!in_place) return no_overlap("grad_logits", grad, "logits (set in_place to overwrite them)", logits);
  bool same = grad.data == logits.data;
  for (int d = 0; d < grad.rank; ++d) same = same && (grad.strides[d] == logits.strides[d] || grad.shape[d] <= 1);
  if (!same)
    refuse(ErrorKind::invalid_argument, "in_place is set, but grad_logits is not the memory of logits with the same "
                                        "strides; pass logits as grad_logits, or clear in_place");
}

float options(const LogpOptions& options, const TensorView& rows, int leading_rank) {
  constexpr double low = 0x1p-20;
  constexpr double high = 0x1p20;
  const double given = options.temperature;
  const float temperature = std::isfinite(given) ? nearest_float(given) : 0.0F;
  if (!std::isfinite(given) || temperature < static_cast<float>(low) || temperature > static_cast<float>(high))
    refuse(ErrorKind::invalid_argument, "temperature is {}; expected a number from 2^-20 to 2^20", given);
  if (options.temperature_per_row.present()) {
    dtype("temperature_per_row", options.temperature_per_row, DType::float32);
    shape("temperature_per_row", options.temperature_per_row, rows, leading_rank);
    memory("temperature_per_row", options.temperature_per_row);
    same_device("temperature_per_row", options.temperature_per_row, rows);
  }
  if (options.numerics != Numerics::portable && rows.device.type == DeviceType::cpu)
    refuse(ErrorKind::unsupported, "native numerics were asked for on a CPU; expected portable, which is the contract");
  if (options.threads < 0 || options.threads > cpu::largest_thread_count)
    refuse(ErrorKind::invalid_argument, "threads is {}; expected 0 (the default) to {}", options.threads,
           +cpu::largest_thread_count);
  return temperature;
}

std::int64_t vocab_size(const LogpOptions& options, std::int64_t stored) {
  if (options.vocab_size == -1) return stored;
  if (options.vocab_size < 1 || options.vocab_size > stored)
    refuse(ErrorKind::invalid_argument, "vocab_size is {}; expected 1 to the {} stored columns, or -1 for all",
           options.vocab_size, stored);
  return options.vocab_size;
}

bool wants_validation(const LogpOptions& options, const Device& device) {
  return device.type == DeviceType::cpu && options.validate != Validate::off;
}

void target_ids(const TensorView& ids, int leading_rank, std::int64_t vocab_size, std::int64_t ignore_index) {
  std::int64_t index[TensorView::max_rank] = {};
  const std::int64_t count = ids.elements();
  const std::int64_t per_row = ids.rank > leading_rank ? ids.shape[leading_rank] : 1;
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t id = id_at(ids, offset);
    if ((id < 0 || id >= vocab_size) && id != ignore_index)
      refuse(ErrorKind::out_of_range, "the target id of row {} is {}; expected 0 to {}, or the ignore_index {}",
             i / per_row, id, vocab_size - 1, ignore_index);
    for (int d = ids.rank - 1; d >= 0; --d) {
      offset += ids.strides[d];
      if (++index[d] < ids.shape[d]) break;
      offset -= ids.strides[d] * ids.shape[d];
      index[d] = 0;
    }
  }
}

} // namespace bilogp::check
