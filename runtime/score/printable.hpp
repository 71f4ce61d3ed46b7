// Text from outside, such as the names of files, as it may be shown on a terminal.
//
// Thread-safety: a pure function.
#pragma once

#include <string>
#include <string_view>

namespace bilogp::score {

// Control characters as \x1b; all other bytes as they are.
std::string printable(std::string_view text);

} // namespace bilogp::score
