// What a Store holds, and what it does about failures.
#pragma once

#include <mutex>
#include <string>

#include "cache/fork_guard.hpp"
#include "cache/memory_entries.hpp"
#include "cache/sqlite.hpp"
#include "cache/store.hpp"
#include "cache/store_file.hpp"

namespace bilogp::cache {

struct Store::State final : ForkMember {
  State(Location where, Warn receiver);
  ~State();

  // Runs `work` on the open file, again where a failure was mended. False when there was no file to read, or when the
  // failure could not be mended; then the file is given up as far as needed and a warning is pending.
  template<class Work> bool attempt(Access access, const Work& work) {
    std::string trouble;
    for (int round = 0; round < 3; ++round) {
      if (access == Access::write ? !writing : !reading) return false;
      try {
        sqlite::Connection* const connection = file.open(access);
        if (connection) work(*connection);
        return connection != nullptr;
      } catch (const sqlite::Failure& failure) {
        if (after(failure, access) == Next::give_up) return false;
        trouble = failure.what();
      } catch (const StoreFile::NotOurs& reason) {
        give_up_file(left_alone_sentence(reason.what()));
        return false;
      }
    }
    give_up_file(path_sentence("keeps failing (" + trouble + ")"));
    return false;
  }

  // The same for tools, once, with failures as Error. False when there is no file.
  template<class Work> bool attempt_or_throw(Access access, const Work& work) {
    try {
      if (file.replaced()) file.close();
      sqlite::Connection* const connection = file.open(access);
      if (connection) work(*connection);
      return connection != nullptr;
    } catch (const sqlite::Failure& failure) {
      throw_as_error(failure, access);
    } catch (const StoreFile::NotOurs& reason) {
      throw_as_error(reason);
    }
  }

  void warn_once(std::string sentence);
  std::int64_t clear_file(); // for Store::clear

  void before_fork() noexcept override { mutex.lock(); }
  void after_fork_in_parent() noexcept override { mutex.unlock(); }
  void after_fork_in_child() noexcept override {
    file.abandon();
    mutex.unlock();
  }

  const Location location;
  const Warn warn;
  std::int64_t maximal_bytes = 0;

  std::mutex mutex; // guards everything below
  StoreFile file;
  MemoryEntries memory;
  bool reading; // the file may be read
  bool writing; // the file may be written
  bool warned = false;
  std::string pending; // the warning, until the mutex is free

private:
  enum class Next { retry, give_up };
  Next after(const sqlite::Failure& failure, Access access);
  Next after_damage();
  void give_up_file(std::string sentence);
  void give_up_writing(std::string sentence);
  std::string path_sentence(std::string_view what) const;
  static std::string left_alone_sentence(std::string_view reason);
  [[noreturn]] void throw_as_error(const sqlite::Failure& failure, Access access) const;
  [[noreturn]] void throw_as_error(const StoreFile::NotOurs& reason) const;
};

// The store's mutex for one operation. The warning is given after it is free: its receiver may do anything, such as
// fork or use the store.
class Hold {
public:
  explicit Hold(Store::State& state);
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

private:
  Store::State& state_;
};

} // namespace bilogp::cache
