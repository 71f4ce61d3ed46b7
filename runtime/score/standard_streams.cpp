#include "runtime/score/standard_streams.hpp"

#include <cstdio>
#include <exception>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/score/printable.hpp"

namespace bilogp::score {

void occupy_standard_streams() noexcept {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    // The lowest number that is free is this one. Opened for reading, so that a lost answer is an error.
    if (::fcntl(stream, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY) < 0) return;
}

bool print_out(std::string_view text) noexcept {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

void print_err(std::string_view text) noexcept {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
  static_cast<void>(std::fflush(stderr));
}

void complain(const char* program, std::string_view lines) noexcept {
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    try {
      print_err(std::string(program) + ": " + printable(lines.substr(0, end)) + "\n");
    } catch (const std::exception&) {
      print_err("there is not enough memory to say what is wrong\n");
    }
    lines = end == std::string_view::npos ? std::string_view() : lines.substr(end + 1);
  }
}

} // namespace bilogp::score
