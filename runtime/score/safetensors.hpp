// Reads the header of a .safetensors file.
//
//   uint64 little-endian: bytes of the header | the header, a JSON object | data
//   {"NAME": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]}, ..., "__metadata__": {"k": "v"}}
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/score/file_tensor.hpp"

namespace bilogp::score {

struct SafetensorsFile {
  std::vector<FileTensor> tensors; // in the order of their data; their bytes point into the file
  std::map<std::string, std::string> metadata;
};

// Accepts a file only when all of it is accounted for: every tensor inside the data, of the size its dtype and shape
// need, none overlapping, no holes. Throws Error(invalid_argument) otherwise, with a sentence that goes after "FILE: ".
SafetensorsFile parse_safetensors(std::span<const std::byte> file);

} // namespace bilogp::score
