// Reads .npy files (numpy.save), format versions 1.0, 2.0 and 3.0.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/score/file_tensor.hpp"

namespace bilogp::score {

struct NpyHeader {
  std::string descr; // "<f4"
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::size_t data_offset = 0; // in the file, where the array begins
};

bool looks_like_npy(std::span<const std::byte> file) noexcept;

// Throws Error(invalid_argument) with a sentence that goes after "FILE: ".
NpyHeader parse_npy_header(std::span<const std::byte> file);

// The whole file as a tensor. numpy has no bfloat16: such arrays are saved as "<V2" or as uint16, and are taken for
// bfloat16 only when `stated` says so. Refuses Fortran order, big-endian numbers and a file of another length.
FileTensor read_npy(std::span<const std::byte> file, std::string name, std::optional<DType> stated);

} // namespace bilogp::score
