// Where the library's warnings leave it: one sentence each, through the callback of bilogp/error.hpp.
#pragma once

#include <string_view>

namespace bilogp {

void warn(std::string_view sentence) noexcept;

} // namespace bilogp
