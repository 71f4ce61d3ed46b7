// What tells one build of a shared library from another, read from its file.
#pragma once

#include <string>

namespace bilogp::cuda {

// The first 16 hexadecimal digits of the linker's build id; for a file without one, its size and date. Empty when the
// file cannot be read.
std::string identity_of_library(const std::string& path);

} // namespace bilogp::cuda
