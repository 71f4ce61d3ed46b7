// Compiled kernels in the driver's hands.
#pragma once

#include <string>
#include <string_view>

#include "runtime/backends/cuda/devices.hpp"

namespace bilogp::cuda {

// Loads a cubin or PTX into the device's context and finds its entry; it stays loaded to the end of the process.
// Throws Error(cache) when the driver refuses the image itself (made for another device, damaged, of a compiler newer
// than the driver), which another compile may mend, and check()'s errors otherwise.
Function load_function(Device& device, std::string_view image, const std::string& entry);

// Throws Error(cache) unless it looks like a cubin or PTX: for images that are only kept.
void check_image(std::string_view image);

} // namespace bilogp::cuda
