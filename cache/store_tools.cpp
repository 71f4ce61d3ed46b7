// The members of Store that tools use: failures are thrown.
#include <utility>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "cache/row.hpp"
#include "cache/store_state.hpp"

namespace bilogp::cache {

namespace {

// Everything but the payload, whose length SQLite knows without reading it.
constexpr char list_query[] = "SELECT key, key_text, backend, target, compiler, description, compile_microseconds, "
                              "created, checksum, x'', length(payload) FROM kernel ORDER BY rowid";

std::vector<std::int64_t> row_numbers(sqlite::Connection& connection) {
  std::vector<std::int64_t> numbers;
  sqlite::Statement select(connection, "SELECT rowid FROM kernel ORDER BY rowid");
  while (select.step()) numbers.push_back(select.integer(0));
  return numbers;
}

// A row copied out of the file, so that it can be looked at while others use the store.
struct CopiedRow {
  ListedEntry listed;
  std::string payload;
  bool sound = false;
};

std::optional<CopiedRow> copy_row(sqlite::Connection& connection, std::int64_t number) {
  sqlite::Statement select(connection, fmt::format("SELECT {} FROM kernel WHERE rowid=?1", row_columns));
  select.bind_integer(1, number);
  if (!select.step()) return std::nullopt; // removed meanwhile
  const Row row = read_row(select);
  return CopiedRow{to_listed(row), std::string(row.payload), row_is_sound(row)};
}

} // namespace

std::vector<ListedEntry> Store::list() {
  State& state = *state_;
  const Hold hold(state);
  std::vector<ListedEntry> entries;
  if (!state.location.directory.empty())
    state.attempt_or_throw(Access::read, [&](sqlite::Connection& connection) {
      sqlite::Statement select(connection, list_query);
      while (select.step()) {
        entries.push_back(to_listed(read_row(select)));
        entries.back().payload_bytes = select.integer(10);
      }
    });
  state.memory.for_each([&](const ListedEntry& entry, std::string_view) { entries.push_back(entry); });
  return entries;
}

VerifyReport Store::verify(const std::function<bool(const ListedEntry&, std::string_view payload)>& check) {
  State& state = *state_;
  VerifyReport report;
  const auto examine = [&](const ListedEntry& entry, std::string_view payload, bool sound) {
    ++report.checked;
    if (!sound || (check && !check(entry, payload))) report.bad.push_back(entry);
  };
  std::vector<std::int64_t> numbers;
  std::vector<std::pair<ListedEntry, std::string>> in_memory;
  {
    const Hold hold(state);
    if (!state.location.directory.empty())
      state.attempt_or_throw(Access::read, [&](sqlite::Connection& connection) { numbers = row_numbers(connection); });
    state.memory.for_each(
        [&](const ListedEntry& entry, std::string_view payload) { in_memory.emplace_back(entry, payload); });
  }
  for (const std::int64_t number : numbers) {
    std::optional<CopiedRow> row;
    {
      const Hold hold(state);
      state.attempt_or_throw(Access::read, [&](sqlite::Connection& connection) { row = copy_row(connection, number); });
    }
    if (row) examine(row->listed, row->payload, row->sound);
  }
  for (const auto& [entry, payload] : in_memory) examine(entry, payload, true);
  return report;
}

std::int64_t Store::clear() {
  State& state = *state_;
  const Hold hold(state);
  std::int64_t count = state.memory.clear();
  if (state.location.directory.empty()) return count;
  if (state.file.bytes() != 0) count += state.clear_file();
  state.file.remove_files_set_aside();
  state.reading = state.writing = true; // what made the file unusable may have gone with its contents
  return count;
}

std::int64_t Store::State::clear_file() {
  const auto remove_rows = [](sqlite::Connection& connection) {
    sqlite::Transaction transaction(connection);
    const std::int64_t count = connection.integer("SELECT count(*) FROM kernel");
    connection.execute("DELETE FROM kernel");
    transaction.commit();
    return count;
  };
  std::int64_t count = 0;
  try {
    if (file.replaced()) file.close();
    if (sqlite::Connection* const connection = file.open(Access::write)) {
      count = remove_rows(*connection);
      connection->execute("VACUUM");
    }
  } catch (const sqlite::Failure& failure) {
    if (!failure.is_damage() || !file.set_aside()) throw_as_error(failure, Access::write);
  } catch (const StoreFile::NotOurs& reason) {
    throw_as_error(reason);
  }
  return count;
}

} // namespace bilogp::cache
