#include "runtime/backends/cuda/targets.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bilogp/error.hpp"

namespace bilogp::cuda {
namespace {

constexpr std::array listed_capabilities = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

// sm_90 itself is not offered: nothing but a Hopper runs its code, and that takes sm_90a.
std::string name_of(int capability) {
  return fmt::format("sm_{}{}", capability, capability == bulk_copy_capability ? "a" : "");
}

} // namespace

std::vector<std::string> known_targets() {
  std::vector<std::string> names;
  for (const int capability : listed_capabilities) names.push_back(name_of(capability));
  return names;
}

Target target_of_capability(int capability) {
  if (capability < oldest_capability)
    throw Error(ErrorKind::unsupported,
                fmt::format("the device has compute capability {}.{}; expected {}.{} or newer (Turing)",
                            capability / 10, capability % 10, oldest_capability / 10, oldest_capability % 10));
  return {name_of(capability), capability};
}

Target resolve_target(std::string_view name) {
  int capability = 0;
  constexpr std::string_view prefix = "sm_";
  if (name.starts_with(prefix)) std::from_chars(name.data() + prefix.size(), name.data() + name.size(), capability);
  // A device newer than the list is known by its number; older ones must be of the list.
  const bool is_listed = std::ranges::find(listed_capabilities, capability) != listed_capabilities.end();
  if ((is_listed || capability > listed_capabilities.back()) && name == name_of(capability))
    return {std::string(name), capability};
  throw Error(ErrorKind::invalid_argument, fmt::format("the target \"cuda:{}\" is unknown; expected one of cuda:{}",
                                                       name, fmt::join(known_targets(), ", cuda:")));
}

CodeChoice code_for(const Target& target, const std::vector<int>& nvrtc_archs) {
  if (std::ranges::find(nvrtc_archs, target.capability) != nvrtc_archs.end()) return {target.name, false};
  int newest = 0;
  for (const int arch : nvrtc_archs)
    if (arch < target.capability) newest = std::max(newest, arch);
  if (newest < oldest_capability)
    throw Error(ErrorKind::compile_failed,
                fmt::format("this NVRTC cannot compile for {} or anything that runs on it; it knows sm_{}: install "
                            "another with `pip install nvidia-cuda-nvrtc`",
                            target.name, fmt::join(nvrtc_archs, ", sm_")));
  return {fmt::format("compute_{}", newest), true};
}

} // namespace bilogp::cuda
