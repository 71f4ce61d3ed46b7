#include "runtime/score/file_tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/score/printable.hpp"

namespace bilogp::score {

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 80;
  return fmt::format("'{}{}'", printable(text.substr(0, longest)), text.size() > longest ? "..." : "");
}

std::optional<std::int64_t> bytes_of(std::span<const std::int64_t> shape, std::int64_t element_bytes) {
  std::int64_t bytes = element_bytes;
  for (const std::int64_t extent : shape) {
    // A zero extent makes the tensor empty, however large the others are.
    if (extent == 0) return 0;
    if (extent < 0) return std::nullopt;
  }
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  return bytes;
}

std::optional<DType> dtype_from_option(std::string_view text) {
  for (const std::string_view name : {"fp32", "f32", "float32"})
    if (text == name) return DType::float32;
  for (const std::string_view name : {"fp16", "f16", "float16"})
    if (text == name) return DType::float16;
  for (const std::string_view name : {"bf16", "bfloat16"})
    if (text == name) return DType::bfloat16;
  return std::nullopt;
}

} // namespace bilogp::score
