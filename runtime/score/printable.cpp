#include "runtime/score/printable.hpp"

#include <fmt/format.h>

namespace bilogp::score {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

} // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned char byte = byte_at(text, i);
    const unsigned char next = byte_at(text, i + 1);
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) { // U+0080 to U+009f in UTF-8: terminals obey these as well
      out += fmt::format("\\x{:02x}", next);
      ++i;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += text[i];
    }
  }
  return out;
}

} // namespace bilogp::score
