// Any bytes as a row of the store and as a kernel image. A row whose checksum is not its own is never sound; an image
// is refused with a sentence, or all its entries lie in its code.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "bilogp/error.hpp"
#include "cache/row.hpp"
#include "runtime/backends/cpu/image.hpp"

namespace {

std::string_view piece(std::string_view& rest) {
  if (rest.empty()) return {};
  const std::size_t length = std::min<std::size_t>(static_cast<unsigned char>(rest[0]), rest.size() - 1);
  const std::string_view taken = rest.substr(1, length);
  rest.remove_prefix(1 + length);
  return taken;
}

void check_row(std::string_view rest) {
  bilogp::cache::Row row;
  for (std::string_view* field :
       {&row.key, &row.checksum, &row.key_text, &row.backend, &row.target, &row.compiler, &row.description})
    *field = piece(rest);
  row.payload = rest;
  row.compile_microseconds = static_cast<std::int64_t>(rest.size());
  const bool sound = bilogp::cache::row_is_sound(row);
  if (sound && !bilogp::cache::checksum_holds(row)) std::abort();
  bilogp::cache::to_listed(row);
  // The same row with its own key and checksum is sound, and no longer so when a byte moves to the next column.
  const bilogp::cache::Hash128 key = bilogp::cache::hash128(row.key_text);
  row.key = bilogp::cache::as_bytes(key);
  const bilogp::cache::Hash128 sum = bilogp::cache::row_checksum(row);
  row.checksum = bilogp::cache::as_bytes(sum);
  if (!bilogp::cache::row_is_sound(row)) std::abort();
  if (row.backend.empty()) return;
  const std::string moved = row.backend.back() + std::string(row.target);
  row.backend.remove_suffix(1);
  row.target = moved;
  if (bilogp::cache::row_is_sound(row)) std::abort();
}

void check_image(std::string_view bytes) {
  try {
    const bilogp::cpu::DecodedImage image = bilogp::cpu::decode_image(bytes);
    for (const bilogp::cpu::ImageEntry& entry : image.entries)
      if (entry.offset >= image.code.size()) std::abort();
    if (image.code.data() + image.code.size() != bytes.data() + bytes.size()) std::abort();
    const std::string again = bilogp::cpu::encode_image(image.machine, image.entries, image.code);
    if (again != bytes) std::abort();
  } catch (const bilogp::Error& error) {
    if (error.kind() != bilogp::ErrorKind::cache) std::abort();
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_row(bytes);
  check_image(bytes);
  return 0;
}
