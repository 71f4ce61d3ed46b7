#include "cache/key_lock.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include <fcntl.h>

#include "cache/fork_guard.hpp"

namespace bilogp::cache {

namespace {

// Locks of the open file description (OFD): unlike POSIX locks they exclude the threads of one process as well and do
// not end when some other descriptor of the file is closed.
int set_lock(int descriptor, std::int64_t offset, short type) noexcept {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = offset;
  range.l_len = 1;
  int result;
  do result = ::fcntl(descriptor, F_OFD_SETLK, &range);
  while (result < 0 && errno == EINTR);
  return result < 0 ? errno : 0;
}

void unlock(int descriptor, std::int64_t offset) {
  set_lock(descriptor, offset, F_UNLCK);
}

} // namespace

std::int64_t lock_offset(const Hash128& key) {
  std::uint64_t high = 0;
  for (std::size_t i = 0; i < 8; ++i) high = high << 8 | key[i];
  return static_cast<std::int64_t>(high >> 2);
}

KeyLock lock_range(const std::string& path, std::int64_t offset, std::chrono::milliseconds limit) {
  const LockDescriptor lock = open_lock_file(path.c_str());
  if (lock.descriptor < 0) return {};
  const auto deadline = std::chrono::steady_clock::now() + limit;
  // Polled, because a blocking lock cannot be bounded without a signal of the host process.
  for (std::chrono::milliseconds pause{1};; pause = std::min(pause * 2, std::chrono::milliseconds{50})) {
    const int error = set_lock(lock.descriptor, offset, F_WRLCK);
    if (error == 0) return {lock.descriptor, lock.generation, offset};
    const bool held_by_another = error == EAGAIN || error == EACCES;
    if (!held_by_another || std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(pause);
  }
  close_lock_file(lock, unlock, offset);
  return {};
}

KeyLock::KeyLock(KeyLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), generation_(other.generation_), offset_(other.offset_) {}

KeyLock& KeyLock::operator=(KeyLock&& other) noexcept {
  if (this != &other) {
    release();
    descriptor_ = std::exchange(other.descriptor_, -1);
    generation_ = other.generation_;
    offset_ = other.offset_;
  }
  return *this;
}

KeyLock::~KeyLock() {
  release();
}

void KeyLock::release() noexcept {
  if (descriptor_ >= 0) close_lock_file({std::exchange(descriptor_, -1), generation_}, unlock, offset_);
}

} // namespace bilogp::cache
