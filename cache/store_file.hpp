// The store's SQLite file: opened on demand, made when there is none, opened again when it was replaced or removed
// under us, set aside when it is damaged.
//
// Thread-safety: none; the store's mutex guards it. Nothing but SQLite may open the file: closing any other descriptor
// of it would drop SQLite's own locks, which belong to the process.
#pragma once

#include <cstdint>
#include <string>

#include "cache/sqlite.hpp"
#include "cache/store.hpp"

namespace bilogp::cache {

inline constexpr std::int64_t application_id = 0x424C4750; // "BLGP"
inline constexpr std::int64_t schema_version = 1;          // a new schema is a new file name

enum class Access { read, write };

class StoreFile {
public:
  // The file is another program's, or of a schema that this version does not know: not to be touched.
  class NotOurs : public std::exception {
  public:
    explicit NotOurs(std::string why) : why_(std::move(why)) {}
    [[nodiscard]] const char* what() const noexcept override { return why_.c_str(); }

  private:
    std::string why_;
  };

  explicit StoreFile(const Location& location);

  // The open connection; null when there is nothing to read (never for writing, which makes what is missing).
  // Throws sqlite::Failure and NotOurs.
  sqlite::Connection* open(Access access);
  void close() noexcept;
  void abandon() noexcept; // in a forked child

  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(connection_); }
  // Whether the path still leads to the file that is open.
  [[nodiscard]] bool replaced() const;

  // Renames the damaged file to kernels-v1.db.corrupt-<unix time>, under the store's lock and unless another process
  // has done so already; earlier ones are removed. False when that cannot be done.
  bool set_aside();
  void remove_files_set_aside() const noexcept;
  [[nodiscard]] const std::string& name_set_aside() const noexcept { return set_aside_; } // the last one, or empty

  sqlite::Statement& select_by_key(); // of row_columns, prepared once per connection

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string lock_path() const { return path_ + ".lock"; }
  [[nodiscard]] std::int64_t bytes() const;
  // Makes the directory and, in a shared place like /tmp, checks that it is ours alone. 0 or errno.
  [[nodiscard]] int make_directory() const;

private:
  struct FileId {
    std::uint64_t device = 0, inode = 0;
    friend bool operator==(const FileId&, const FileId&) = default;
  };
  static FileId id_of(const std::string& path); // zeros when missing
  enum class Identity { blank, ours };
  Identity identify(sqlite::Connection& connection) const;
  void create_schema(sqlite::Connection& connection) const;
  sqlite::Connection connect(sqlite::Connection::Mode mode) const;
  [[nodiscard]] bool is_sound() const;

  Location location_;
  std::string path_;
  std::string set_aside_;
  sqlite::Connection connection_;
  sqlite::Statement select_;
  FileId opened_;
};

} // namespace bilogp::cache
