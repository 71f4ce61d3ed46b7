// The key of a stored kernel: named fields in a fixed order, as canonical text, and the XXH3-128 hash of that text.
//
// Grammar of the text (lengths are decimal byte counts, so no two lists of fields have the same text):
//   key   = "bilogp-key-1\n" *field
//   field = name ":" length ":" value "\n"
//   name  = 1*(a-z / 0-9 / "_")
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace bilogp::cache {

using Hash128 = std::array<unsigned char, 16>; // big-endian XXH3-128

Hash128 hash128(std::string_view bytes);
std::string to_hex(const Hash128& hash);

class Key {
public:
  Key();
  // Appends a field. The order of the calls is part of the key.
  Key& add(std::string_view name, std::string_view value);
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] Hash128 hash() const { return hash128(text_); }

private:
  std::string text_;
};

} // namespace bilogp::cache
