#include "cache/key.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bilogp/error.hpp"

namespace bilogp::cache {

Hash128 hash128(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  Hash128 hash;
  for (std::size_t i = 0; i < hash.size(); ++i) hash[i] = canonical.digest[i];
  return hash;
}

std::string to_hex(const Hash128& hash) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * hash.size());
  for (const unsigned char byte : hash) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

Key::Key() : text_("bilogp-key-1\n") {}

Key& Key::add(std::string_view name, std::string_view value) {
  // A name with a colon or a newline could make two lists of fields read the same.
  if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string_view::npos)
    throw Error(ErrorKind::invalid_argument,
                "the key field name '" + std::string(name) + "' must be of a-z, 0-9 and _ and not be empty");
  text_.append(name).append(1, ':').append(std::to_string(value.size())).append(1, ':').append(value).append(1, '\n');
  return *this;
}

} // namespace bilogp::cache
