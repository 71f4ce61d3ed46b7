// What StoreFile does about a damaged file.
#include <ctime>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "cache/key_lock.hpp"
#include "cache/location.hpp"
#include "cache/row.hpp"
#include "cache/store_file.hpp"

namespace bilogp::cache {

namespace {

constexpr std::chrono::milliseconds set_aside_limit{10'000};

} // namespace

bool StoreFile::is_sound() const {
  try {
    auto connection = connect(sqlite::Connection::Mode::read_write);
    if (identify(connection) == Identity::blank) return true;
    const sqlite::Statement complete(connection, fmt::format("SELECT {} FROM kernel", row_columns));
    connection.execute("BEGIN"); // nobody writes while the length is looked at
    return connection.text("PRAGMA integrity_check(1)") == "ok" &&
           std::filesystem::file_size(path_) % static_cast<std::uintmax_t>(connection.integer("PRAGMA page_size")) == 0;
  } catch (const sqlite::Failure& failure) {
    // Trouble of another kind is no reason to throw a file away.
    return !failure.is_damage();
  } catch (const NotOurs&) {
    return true;
  } catch (const std::filesystem::filesystem_error&) {
    return true; // gone: there is nothing to set aside
  }
}

bool StoreFile::set_aside() {
  const FileId damaged = connection_ ? opened_ : id_of(path_);
  close();
  const KeyLock lock = lock_range(lock_path(), store_lock_offset, set_aside_limit);
  // Without the lock (none on this file system) the two checks and the atomic rename still protect a good file.
  if (id_of(path_) != damaged || is_sound()) return true;
  remove_files_set_aside();
  const std::string aside = fmt::format("{}.corrupt-{}", path_, static_cast<std::int64_t>(std::time(nullptr)));
  // A journal belongs to its database and must not be played into the new one. It goes first: as soon as the database
  // is away, another process may be writing a new one with a journal of the same name.
  ::rename((path_ + "-journal").c_str(), (aside + "-journal").c_str());
  if (::rename(path_.c_str(), aside.c_str()) != 0) return false;
  set_aside_ = aside;
  return true;
}

void StoreFile::remove_files_set_aside() const noexcept {
  const std::string prefix = std::string(store_file_name) + ".corrupt-";
  std::error_code error;
  for (std::filesystem::directory_iterator entry(location_.directory, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().filename().native().starts_with(prefix)) ::unlink(entry->path().c_str());
}

} // namespace bilogp::cache
