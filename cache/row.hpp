// One row of the store: its table, its checksum, and reading and writing it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cache/key.hpp"
#include "cache/sqlite.hpp"
#include "cache/store.hpp"

namespace bilogp::cache {

// Metadata stand before the payload so that listing does not read the payload's pages. Rows keep their order of
// insertion in rowid, which is what eviction goes by: a clock that jumps cannot empty the store.
inline constexpr char create_table[] = "CREATE TABLE kernel("
                                       "key BLOB PRIMARY KEY NOT NULL, key_text TEXT NOT NULL, backend TEXT NOT NULL, "
                                       "target TEXT NOT NULL, compiler TEXT NOT NULL, description TEXT NOT NULL, "
                                       "compile_microseconds INTEGER NOT NULL, created INTEGER NOT NULL, "
                                       "checksum BLOB NOT NULL, payload BLOB NOT NULL)";

// A whole row. The views belong to whoever filled it.
struct Row {
  std::string_view key; // 16 bytes
  std::string_view key_text;
  std::string_view backend, target, compiler, description;
  std::int64_t compile_microseconds = 0;
  std::int64_t created_unix = 0;
  std::string_view checksum; // 16 bytes
  std::string_view payload;
};

// XXH3-128 over the key text, every column of metadata and the payload, each preceded by its length, so that no byte
// of a row can change or move to another column unseen.
Hash128 row_checksum(const Row& row);
bool checksum_holds(const Row& row);
// The checksum holds and the key is the hash of the text.
bool row_is_sound(const Row& row);

Row make_row(std::string_view key_text, const Metadata& metadata, std::string_view payload, std::int64_t created_unix);
ListedEntry to_listed(const Row& row);
Metadata to_metadata(const Row& row);

// Columns of `Row` in order, for SELECT.
inline constexpr char row_columns[] =
    "key, key_text, backend, target, compiler, description, compile_microseconds, created, checksum, payload";
Row read_row(const sqlite::Statement& statement);

// Inserts, replacing a row of the same key.
void insert_row(sqlite::Connection& connection, const Row& row, const Hash128& key, const Hash128& checksum);

inline std::string_view as_bytes(const Hash128& hash) {
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

} // namespace bilogp::cache
