#include "cache/store_state.hpp"

#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

#include "bilogp/error.hpp"
#include "cache/location.hpp"

namespace bilogp::cache {

Store::State::State(Location where, Warn receiver)
    : location(std::move(where)), warn(std::move(receiver)), file(location), reading(!location.directory.empty()),
      writing(reading) {
  std::string complaint;
  maximal_bytes = cache::maximal_bytes(process_surroundings(), complaint);
  if (!complaint.empty()) warn_once(std::move(complaint));
  join_fork_guard(*this);
}

Store::State::~State() {
  leave_fork_guard(*this);
}

Hold::Hold(Store::State& state) : state_(state) {
  state_.mutex.lock();
}

Hold::~Hold() {
  const std::string sentence = std::exchange(state_.pending, {});
  state_.mutex.unlock();
  if (sentence.empty() || !state_.warn) return;
  try {
    state_.warn(sentence);
  } catch (...) {
    return; // a receiver that throws must not turn a lost cache into a failed call
  }
}

void Store::State::warn_once(std::string sentence) {
  if (!std::exchange(warned, true)) pending = std::move(sentence);
}

void Store::State::give_up_file(std::string sentence) {
  file.close();
  reading = writing = false;
  warn_once(std::move(sentence));
}

void Store::State::give_up_writing(std::string sentence) {
  writing = false;
  warn_once(std::move(sentence));
}

std::string Store::State::path_sentence(std::string_view what) const {
  return fmt::format("the kernel store {} {}; this process keeps its kernels in memory only", file.path(), what);
}

std::string Store::State::left_alone_sentence(std::string_view reason) {
  return fmt::format("{}; it is left alone and this process keeps its kernels in memory only", reason);
}

Store::State::Next Store::State::after(const sqlite::Failure& failure, Access access) {
  if (failure.code() == SQLITE_READONLY_DBMOVED || (file.is_open() && file.replaced())) {
    file.close();
    return Next::retry;
  }
  if (failure.is_damage()) return after_damage();
  switch (failure.primary()) {
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
  case SQLITE_PROTOCOL:
    if (access == Access::write)
      warn_once(fmt::format("the kernel store {} is locked by another process; a kernel was not stored", file.path()));
    return Next::give_up;
  case SQLITE_CANTOPEN:
    if (access == Access::read) return Next::retry; // it may have been set aside or removed a moment ago
    break;
  case SQLITE_NOMEM:
  case SQLITE_TOOBIG:
    return Next::give_up; // this entry's trouble, not the file's
  default:
    break;
  }
  if (access == Access::write)
    give_up_writing(path_sentence(fmt::format("cannot be written ({})", failure.what())));
  else
    give_up_file(path_sentence(fmt::format("cannot be read ({})", failure.what())));
  return Next::give_up;
}

Store::State::Next Store::State::after_damage() {
  const std::string before = file.name_set_aside();
  if (!file.set_aside()) {
    give_up_file(path_sentence("is damaged and cannot be set aside"));
    return Next::give_up;
  }
  if (file.name_set_aside() != before)
    warn_once(fmt::format("the kernel store {} was damaged and has been set aside as {}; kernels are compiled again",
                          file.path(), file.name_set_aside()));
  return Next::retry;
}

void Store::State::throw_as_error(const sqlite::Failure& failure, Access access) const {
  const char* const verb = access == Access::write ? "written" : "read";
  if (failure.is_damage())
    throw Error(ErrorKind::cache,
                fmt::format("the kernel store {} is damaged ({}); `bilogp-warmcache clear` removes it", file.path(),
                            failure.what()));
  switch (failure.primary()) {
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    throw Error(ErrorKind::cache,
                fmt::format("the kernel store {} is locked by another process; try again later", file.path()));
  default:
    throw Error(ErrorKind::io, fmt::format("the kernel store {} cannot be {} ({}); check the disk and its permissions",
                                           file.path(), verb, failure.what()));
  }
}

void Store::State::throw_as_error(const StoreFile::NotOurs& reason) const {
  throw Error(ErrorKind::cache, fmt::format("{}; set BILOGP_CACHE_DIR to another directory", reason.what()));
}

} // namespace bilogp::cache
