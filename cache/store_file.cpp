#include "cache/store_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/directory.hpp"
#include "cache/location.hpp"
#include "cache/row.hpp"

namespace bilogp::cache {

namespace {

// SQLite refuses links anywhere in the path (a planted link must not make us write elsewhere), yet a home behind a
// link is common: the directory is resolved first, the file's own name is not.
std::string resolved(const std::string& path) {
  const auto slash = path.find_last_of('/');
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.substr(0, slash).c_str(), nullptr), std::free);
  return real ? std::string(real.get()) + path.substr(slash) : path;
}

} // namespace

StoreFile::StoreFile(const Location& location) : location_(location) {
  if (!location.directory.empty()) path_ = location.directory + '/' + store_file_name;
}

StoreFile::FileId StoreFile::id_of(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return {};
  return {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino)};
}

std::int64_t StoreFile::bytes() const {
  struct stat status;
  return ::stat(path_.c_str(), &status) == 0 ? static_cast<std::int64_t>(status.st_size) : 0;
}

int StoreFile::make_directory() const {
  if (const int error = make_directories(location_.directory); error != 0) return error;
  const bool shared_place = location_.reason == "TMPDIR";
  return shared_place && !why_not_private(location_.directory, ::geteuid()).empty() ? EPERM : 0;
}

bool StoreFile::replaced() const {
  return id_of(path_) != opened_;
}

void StoreFile::close() noexcept {
  select_ = {};
  connection_ = {};
}

void StoreFile::abandon() noexcept {
  select_.abandon();
  connection_.abandon();
}

sqlite::Connection StoreFile::connect(sqlite::Connection::Mode mode) const {
  return {resolved(path_), mode};
}

sqlite::Connection* StoreFile::open(Access access) {
  if (connection_ && access == Access::write && replaced()) close();
  if (!connection_) {
    const bool make = access == Access::write;
    if (make) {
      if (const int error = make_directory(); error != 0)
        throw sqlite::Failure(SQLITE_CANTOPEN, fmt::format("{}: {}", location_.directory, std::strerror(error)));
    } else if (id_of(path_) == FileId{}) {
      return nullptr;
    }
    auto fresh = connect(make ? sqlite::Connection::Mode::read_write_create : sqlite::Connection::Mode::read_write);
    const FileId id = id_of(path_);
    if (identify(fresh) == Identity::blank) {
      if (!make) return nullptr;
      create_schema(fresh);
    }
    // Only now that the file is known as ours: the journal mode of another's may be written into it.
    fresh.execute("PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=NORMAL;");
    select_ = sqlite::Statement(fresh, fmt::format("SELECT {} FROM kernel WHERE key=?1", row_columns));
    connection_ = std::move(fresh);
    opened_ = id;
  }
  if (access == Access::write && connection_.read_only())
    throw sqlite::Failure(SQLITE_READONLY, "the file cannot be written by this user");
  return &connection_;
}

sqlite::Statement& StoreFile::select_by_key() {
  return select_;
}

StoreFile::Identity StoreFile::identify(sqlite::Connection& connection) const {
  // One statement, so that a store made by another process meanwhile is seen as a whole or not at all.
  sqlite::Statement ask(connection, "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
                                    "FROM pragma_application_id, pragma_user_version");
  ask.step();
  const std::int64_t id = ask.integer(0);
  const std::int64_t version = ask.integer(1);
  const std::int64_t tables = ask.integer(2);
  if (id == application_id && version == schema_version) return Identity::ours;
  if (id == application_id)
    throw NotOurs(fmt::format("the kernel store {} has schema {} and this version of bilogp knows {}", path_, version,
                              schema_version));
  if (id == 0 && version == 0 && tables == 0) return Identity::blank;
  throw NotOurs(fmt::format("{} is a database of another program", path_));
}

void StoreFile::create_schema(sqlite::Connection& connection) const {
  if (connection.read_only()) throw sqlite::Failure(SQLITE_READONLY, "the file cannot be written by this user");
  connection.execute("PRAGMA page_size=16384; PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=NORMAL;");
  sqlite::Transaction transaction(connection);
  // Another process may have made it while we waited.
  if (identify(connection) == Identity::ours) return;
  connection.execute(create_table);
  connection.execute(
      fmt::format("PRAGMA application_id={}; PRAGMA user_version={};", application_id, schema_version).c_str());
  transaction.commit();
}

} // namespace bilogp::cache
