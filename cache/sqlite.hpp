// SQLite as the store uses it: connections, statements and transactions that close themselves, and failures as an
// exception that stays inside cache/.
//
// Thread-safety: none; the store keeps each connection behind its own mutex.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace bilogp::cache::sqlite {

class Failure : public std::exception {
public:
  Failure(int code, std::string message) : code_(code), message_(std::move(message)) {}
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }
  [[nodiscard]] int code() const noexcept { return code_; }           // extended result code
  [[nodiscard]] int primary() const noexcept { return code_ & 0xff; } // SQLITE_BUSY, SQLITE_FULL, ...
  // The file is no database, or not one with our table, or ends in the middle of a page: not a fault of its disk.
  [[nodiscard]] bool is_damage() const noexcept;

private:
  int code_;
  std::string message_;
};

class Connection {
public:
  enum class Mode { read_write, read_write_create };

  Connection() = default;
  // Opens and hardens; a file that may not be written is opened for reading. Links are not followed.
  Connection(const std::string& path, Mode mode);
  ~Connection();
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&& other) noexcept;

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  [[nodiscard]] bool read_only() const;
  void execute(const char* statements);
  std::int64_t integer(const char* query); // first column of the first row
  std::string text(const char* query);

  // After a fork the child may neither use nor close its parent's connection: its file locks belong to the parent.
  void abandon() noexcept { handle_ = nullptr; }

private:
  friend class Statement;
  friend class Transaction;
  [[noreturn]] void fail(int code) const;
  sqlite3* handle_ = nullptr;
};

class Statement {
public:
  Statement() = default;
  Statement(Connection& connection, const std::string& text);
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  // Parameters count from 1. The bytes are not copied: they must live until the statement is rewound.
  void bind_blob(int parameter, std::string_view bytes);
  void bind_text(int parameter, std::string_view text);
  void bind_integer(int parameter, std::int64_t value);
  bool step(); // true: there is a row
  // Columns count from 0; the views end with the next step or rewind.
  [[nodiscard]] std::string_view blob(int column) const;
  [[nodiscard]] std::string_view text(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  void rewind() noexcept; // gives up the read lock

  void abandon() noexcept { handle_ = nullptr; }

private:
  void check(int code) const;
  sqlite3_stmt* handle_ = nullptr;
};

// Rewinds a statement that is kept, whichever way its use ends.
class Rewinder {
public:
  explicit Rewinder(Statement& statement) : statement_(statement) {}
  ~Rewinder() { statement_.rewind(); }
  Rewinder(const Rewinder&) = delete;
  Rewinder& operator=(const Rewinder&) = delete;

private:
  Statement& statement_;
};

// BEGIN IMMEDIATE; rolled back unless committed. Taking the write lock at once avoids the upgrade from a read lock,
// which fails without waiting when two processes try it.
class Transaction {
public:
  explicit Transaction(Connection& connection);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

private:
  Connection& connection_;
  bool open_ = true;
};

std::string_view library_version() noexcept; // "3.40.1"

} // namespace bilogp::cache::sqlite
