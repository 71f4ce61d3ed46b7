// The kernel templates as they were when the library was built.
#pragma once

#include <span>
#include <string_view>

namespace bilogp {

struct EmbeddedFile {
  std::string_view name; // "canon/leaf.h", "logp_forward.kernel"
  std::string_view text;
};

std::span<const EmbeddedFile> embedded_templates() noexcept;

} // namespace bilogp
