// What the programs say on stdout and stderr.
//
// Thread-safety: any thread, after occupy_standard_streams.
#pragma once

#include <string_view>

namespace bilogp::score {

// Takes the numbers of standard streams that were closed before the program began: a file opened later would get them,
// and what is said would be written into it. Writing to such a stream fails.
void occupy_standard_streams() noexcept;

// Writes all of it to stdout; false when that cannot be done.
[[nodiscard]] bool print_out(std::string_view text) noexcept;

// To stderr as far as that takes it: a full disk or a terminal that went away does not end a run.
void print_err(std::string_view text) noexcept;

// "PROGRAM: LINE" to stderr for each line, as print_err, with what a terminal would obey escaped.
void complain(const char* program, std::string_view lines) noexcept;

} // namespace bilogp::score
