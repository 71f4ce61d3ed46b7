#include "cache/row.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace bilogp::cache {

namespace {

class Digest {
public:
  Digest() { XXH3_128bits_reset(&state_); }
  void add(std::int64_t value) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(static_cast<std::uint64_t>(value) >> (8 * i));
    XXH3_128bits_update(&state_, bytes, sizeof bytes);
  }
  void add(std::string_view bytes) {
    add(static_cast<std::int64_t>(bytes.size()));
    XXH3_128bits_update(&state_, bytes.data(), bytes.size());
  }
  Hash128 finish() {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_));
    Hash128 hash;
    for (std::size_t i = 0; i < hash.size(); ++i) hash[i] = canonical.digest[i];
    return hash;
  }

private:
  XXH3_state_t state_;
};

std::string hex_of(std::string_view bytes) {
  Hash128 hash{};
  for (std::size_t i = 0; i < hash.size() && i < bytes.size(); ++i) hash[i] = static_cast<unsigned char>(bytes[i]);
  return to_hex(hash);
}

} // namespace

Hash128 row_checksum(const Row& row) {
  Digest digest;
  digest.add(std::string_view("bilogp-row-1"));
  for (const std::string_view text : {row.key_text, row.backend, row.target, row.compiler, row.description})
    digest.add(text);
  digest.add(row.compile_microseconds);
  digest.add(row.created_unix);
  digest.add(row.payload);
  return digest.finish();
}

bool checksum_holds(const Row& row) {
  return row.checksum == as_bytes(row_checksum(row));
}

bool row_is_sound(const Row& row) {
  return row.key == as_bytes(hash128(row.key_text)) && checksum_holds(row);
}

Row make_row(std::string_view key_text, const Metadata& metadata, std::string_view payload, std::int64_t created_unix) {
  Row row;
  row.key_text = key_text;
  row.backend = metadata.backend;
  row.target = metadata.target;
  row.compiler = metadata.compiler;
  row.description = metadata.description;
  row.compile_microseconds = metadata.compile_microseconds;
  row.created_unix = created_unix;
  row.payload = payload;
  return row;
}

Metadata to_metadata(const Row& row) {
  return {std::string(row.backend), std::string(row.target), std::string(row.compiler), std::string(row.description),
          row.compile_microseconds};
}

ListedEntry to_listed(const Row& row) {
  return {hex_of(row.key), std::string(row.key_text), to_metadata(row), static_cast<std::int64_t>(row.payload.size()),
          row.created_unix};
}

Row read_row(const sqlite::Statement& statement) {
  Row row;
  row.key = statement.blob(0);
  row.key_text = statement.text(1);
  row.backend = statement.text(2);
  row.target = statement.text(3);
  row.compiler = statement.text(4);
  row.description = statement.text(5);
  row.compile_microseconds = statement.integer(6);
  row.created_unix = statement.integer(7);
  row.checksum = statement.blob(8);
  row.payload = statement.blob(9);
  return row;
}

void insert_row(sqlite::Connection& connection, const Row& row, const Hash128& key, const Hash128& checksum) {
  sqlite::Statement insert(connection, "INSERT OR REPLACE INTO kernel(key, key_text, backend, target, compiler, "
                                       "description, compile_microseconds, created, checksum, payload) "
                                       "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
  insert.bind_blob(1, as_bytes(key));
  insert.bind_text(2, row.key_text);
  insert.bind_text(3, row.backend);
  insert.bind_text(4, row.target);
  insert.bind_text(5, row.compiler);
  insert.bind_text(6, row.description);
  insert.bind_integer(7, row.compile_microseconds);
  insert.bind_integer(8, row.created_unix);
  insert.bind_blob(9, as_bytes(checksum));
  insert.bind_blob(10, row.payload);
  insert.step();
}

} // namespace bilogp::cache
