#include "cache/sqlite.hpp"

#include <chrono>
#include <climits>
#include <thread>
#include <utility>

#include <sqlite3.h>

namespace bilogp::cache::sqlite {

namespace {

// Waits for another process's lock, 5 s in all. SQLite's own handler sleeps up to 100 ms at a time, at which a reader
// can miss every gap between the writes of a dozen processes that start together.
int wait_while_busy(void*, int attempt) {
  constexpr int attempts = 1250;
  if (attempt >= attempts) return 0;
  const int milliseconds = attempt < 5 ? 1 : 2 + attempt * 7 % 5; // not in step with one another
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  return 1;
}

int length_of(std::string_view bytes) {
  if (bytes.size() > INT_MAX) throw Failure(SQLITE_TOOBIG, "a value of more than 2 GiB");
  return static_cast<int>(bytes.size());
}

} // namespace

bool Failure::is_damage() const noexcept {
  return primary() == SQLITE_NOTADB || primary() == SQLITE_CORRUPT || primary() == SQLITE_ERROR ||
         code() == SQLITE_IOERR_SHORT_READ || code() == SQLITE_IOERR_CORRUPTFS;
}

Connection::Connection(const std::string& path, Mode mode) {
  const int create = mode == Mode::read_write_create ? SQLITE_OPEN_CREATE : 0;
  const int flags =
      SQLITE_OPEN_READWRITE | create | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_PRIVATECACHE;
  if (const int code = sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr); code != SQLITE_OK) {
    const int extended = handle_ ? sqlite3_extended_errcode(handle_) : code;
    const std::string message = handle_ ? sqlite3_errmsg(handle_) : "out of memory";
    sqlite3_close_v2(std::exchange(handle_, nullptr));
    throw Failure(extended, message);
  }
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_handler(handle_, wait_while_busy, nullptr);
  // The file may have been written by anybody: nothing in it gets to run.
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  try {
    execute("PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;");
  } catch (...) {
    sqlite3_close_v2(std::exchange(handle_, nullptr));
    throw;
  }
}

Connection::~Connection() {
  if (handle_) sqlite3_close_v2(handle_);
}

Connection::Connection(Connection&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

Connection& Connection::operator=(Connection&& other) noexcept {
  if (this != &other) {
    if (handle_) sqlite3_close_v2(handle_);
    handle_ = std::exchange(other.handle_, nullptr);
  }
  return *this;
}

bool Connection::read_only() const {
  return sqlite3_db_readonly(handle_, "main") != 0;
}

void Connection::fail(int code) const {
  throw Failure(code, sqlite3_errmsg(handle_));
}

void Connection::execute(const char* statements) {
  if (const int code = sqlite3_exec(handle_, statements, nullptr, nullptr, nullptr); code != SQLITE_OK) fail(code);
}

std::int64_t Connection::integer(const char* query) {
  Statement statement(*this, query);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Connection::text(const char* query) {
  Statement statement(*this, query);
  return statement.step() ? std::string(statement.text(0)) : std::string();
}

Statement::Statement(Connection& connection, const std::string& text) {
  const int code = sqlite3_prepare_v3(connection.handle_, text.c_str(), length_of(text), SQLITE_PREPARE_PERSISTENT,
                                      &handle_, nullptr);
  if (code != SQLITE_OK) connection.fail(code);
}

Statement::~Statement() {
  if (handle_) sqlite3_finalize(handle_);
}

Statement::Statement(Statement&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  if (this != &other) {
    if (handle_) sqlite3_finalize(handle_);
    handle_ = std::exchange(other.handle_, nullptr);
  }
  return *this;
}

void Statement::check(int code) const {
  if (code != SQLITE_OK) throw Failure(code, sqlite3_errmsg(sqlite3_db_handle(handle_)));
}

void Statement::bind_blob(int parameter, std::string_view bytes) {
  // A null pointer would bind NULL, not an empty blob.
  const char* data = bytes.empty() ? "" : bytes.data();
  check(sqlite3_bind_blob(handle_, parameter, data, length_of(bytes), SQLITE_STATIC));
}

void Statement::bind_text(int parameter, std::string_view text) {
  const char* data = text.empty() ? "" : text.data();
  check(sqlite3_bind_text(handle_, parameter, data, length_of(text), SQLITE_STATIC));
}

void Statement::bind_integer(int parameter, std::int64_t value) {
  check(sqlite3_bind_int64(handle_, parameter, value));
}

bool Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) check(code);
  return false;
}

std::string_view Statement::blob(int column) const {
  const void* data = sqlite3_column_blob(handle_, column);
  return data ? std::string_view(static_cast<const char*>(data),
                                 static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)))
              : std::string_view();
}

std::string_view Statement::text(int column) const {
  const unsigned char* data = sqlite3_column_text(handle_, column);
  return data ? std::string_view(reinterpret_cast<const char*>(data),
                                 static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)))
              : std::string_view();
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_, column);
}

void Statement::rewind() noexcept {
  if (!handle_) return;
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
}

Transaction::Transaction(Connection& connection) : connection_(connection) {
  connection.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  // SQLite has rolled back by itself after some failures.
  if (open_ && !sqlite3_get_autocommit(connection_.handle_))
    sqlite3_exec(connection_.handle_, "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  connection_.execute("COMMIT");
  open_ = false;
}

std::string_view library_version() noexcept {
  return sqlite3_libversion();
}

} // namespace bilogp::cache::sqlite
