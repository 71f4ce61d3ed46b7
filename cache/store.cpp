#include "cache/store.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "cache/key_lock.hpp"
#include "cache/location.hpp"
#include "cache/row.hpp"
#include "cache/store_state.hpp"

namespace bilogp::cache {

namespace {

constexpr std::int64_t page_bytes = 16384;

void delete_row(sqlite::Connection& connection, const Hash128& key) {
  sqlite::Statement statement(connection, "DELETE FROM kernel WHERE key=?1");
  statement.bind_blob(1, as_bytes(key));
  statement.step();
}

// Pages that an entry takes at most: its payload's chain, its row's page, one more for each of the two trees.
std::int64_t bytes_of(const Row& row) {
  const auto size = static_cast<std::int64_t>(row.payload.size() + row.key_text.size() + row.description.size());
  return (size / page_bytes + 4) * page_bytes;
}

// Makes room for `needed` bytes: when the used pages would pass `maximal`, down to nine tenths of it, the entries put
// first go.
void evict(sqlite::Connection& connection, std::int64_t needed, std::int64_t maximal) {
  const auto used = [&connection] {
    return (connection.integer("PRAGMA page_count") - connection.integer("PRAGMA freelist_count")) *
           connection.integer("PRAGMA page_size");
  };
  if (used() + needed <= maximal) return;
  const std::int64_t goal = maximal - maximal / 10;
  sqlite::Statement first(connection, "DELETE FROM kernel WHERE rowid=(SELECT min(rowid) FROM kernel)");
  while (used() + needed > goal && connection.integer("SELECT count(*) FROM (SELECT 1 FROM kernel LIMIT 1)") != 0) {
    first.step();
    first.rewind();
  }
}

} // namespace

Store::Store(Location location, Warn warn) : state_(std::make_unique<State>(std::move(location), std::move(warn))) {}

Store::~Store() = default;

std::optional<Entry> Store::get(const Key& key) {
  State& state = *state_;
  const Hold hold(state);
  if (auto kept = state.memory.get(key.text())) return kept;
  const Hash128 hash = key.hash();
  std::optional<Entry> found;
  bool damaged = false;
  const auto look = [&](sqlite::Connection&) {
    sqlite::Statement& select = state.file.select_by_key();
    const sqlite::Rewinder rewinder(select);
    select.bind_blob(1, as_bytes(hash));
    if (!select.step()) return;
    const Row row = read_row(select);
    damaged = !checksum_holds(row);
    // Another text is another key with the same hash.
    if (!damaged && row.key_text == key.text()) found = Entry{to_metadata(row), std::string(row.payload)};
  };
  state.attempt(Access::read, look);
  if (!found && !damaged && state.file.is_open() && state.file.replaced()) { // others go on with a new file
    state.file.close();
    state.attempt(Access::read, look);
  }
  if (damaged) state.attempt(Access::write, [&](sqlite::Connection& connection) { delete_row(connection, hash); });
  return found;
}

bool Store::put(const Key& key, const Metadata& metadata, std::string_view payload) {
  State& state = *state_;
  const Hold hold(state);
  Row row = make_row(key.text(), metadata, payload, static_cast<std::int64_t>(std::time(nullptr)));
  const Hash128 hash = key.hash();
  const Hash128 checksum = row_checksum(row);
  const std::int64_t needed = bytes_of(row);
  const bool stored =
      needed <= state.maximal_bytes && state.attempt(Access::write, [&](sqlite::Connection& connection) {
        sqlite::Transaction transaction(connection);
        evict(connection, needed, state.maximal_bytes);
        insert_row(connection, row, hash, checksum);
        transaction.commit();
      });
  if (stored) {
    state.memory.erase(key.text());
    return true;
  }
  const bool in_memory =
      state.memory.put(key.text(), {metadata, std::string(payload)}, row.created_unix, state.maximal_bytes);
  if (!state.location.directory.empty()) return false;
  if (!asked_for_memory(state.location))
    state.warn_once(fmt::format("kernels are not kept between processes: {}", state.location.reason));
  return in_memory;
}

void Store::erase(const Key& key) {
  State& state = *state_;
  const Hold hold(state);
  state.memory.erase(key.text());
  if (state.file.bytes() == 0) return; // nothing to make a file for
  state.attempt(Access::write, [&](sqlite::Connection& connection) { delete_row(connection, key.hash()); });
}

KeyLock Store::lock(const Key& key) {
  State& state = *state_;
  std::string path;
  {
    const Hold hold(state);
    // A directory that cannot be made is for `put` to complain about.
    if (!state.writing || state.file.make_directory() != 0) return {};
    path = state.file.lock_path();
  }
  const auto start = std::chrono::steady_clock::now();
  KeyLock lock = lock_range(path, lock_offset(key.hash()), key_lock_limit);
  if (!lock.held() && std::chrono::steady_clock::now() - start >= key_lock_limit) {
    const Hold hold(state);
    state.warn_once(fmt::format("waited {} s for another process that compiles the same kernel; compiling it here too",
                                std::chrono::duration_cast<std::chrono::seconds>(key_lock_limit).count()));
  }
  return lock;
}

const Location& Store::location() const noexcept {
  return state_->location;
}

std::string Store::file() const {
  return state_->file.path();
}

std::int64_t Store::file_bytes() const {
  return state_->location.directory.empty() ? 0 : state_->file.bytes();
}

} // namespace bilogp::cache
