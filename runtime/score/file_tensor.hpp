// A tensor as it lies in a file, whatever the file's format, and how names from files are shown to people.
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bilogp/tensor.hpp"

namespace bilogp::score {

struct FileTensor {
  std::string name;
  std::string dtype_name;     // as the file spells it: "BF16", "<f4"
  std::optional<DType> dtype; // what it is here; empty for a dtype that bilogp does not know
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes; // row-major, little-endian, perhaps not aligned
};

// "[48, 49152]"
std::string shape_text(std::span<const std::int64_t> shape);

// In single quotes, with control characters escaped and at most 80 bytes of it: file contents are not trusted.
std::string in_quotes(std::string_view text);

// Product of the shape times the bytes of an element; empty when that is beyond int64.
std::optional<std::int64_t> bytes_of(std::span<const std::int64_t> shape, std::int64_t element_bytes);

// "fp32", "float32", "f32", ... as the command line spells them; empty for anything else.
std::optional<DType> dtype_from_option(std::string_view text);

} // namespace bilogp::score
