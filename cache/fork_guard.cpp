#include "cache/fork_guard.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

namespace bilogp::cache {

namespace {

// Never destroyed: threads may fork while the process ends.
struct Guard {
  std::mutex members_mutex;
  std::vector<ForkMember*> members;
  std::mutex locks_mutex; // taken last
  std::vector<int> lock_descriptors;
  std::uint64_t generation = 0; // under locks_mutex
};

Guard& guard() {
  static Guard* the_guard = new Guard;
  return *the_guard;
}

void before_fork() {
  Guard& g = guard();
  g.members_mutex.lock();
  for (ForkMember* member : g.members) member->before_fork();
  g.locks_mutex.lock();
}

void after_fork_in_parent() {
  Guard& g = guard();
  g.locks_mutex.unlock();
  for (ForkMember* member : g.members) member->after_fork_in_parent();
  g.members_mutex.unlock();
}

void after_fork_in_child() {
  Guard& g = guard();
  for (const int descriptor : g.lock_descriptors) ::close(descriptor);
  g.lock_descriptors.clear();
  ++g.generation;
  g.locks_mutex.unlock();
  for (ForkMember* member : g.members) member->after_fork_in_child();
  g.members_mutex.unlock();
}

void install() {
  static const int installed = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  static_cast<void>(installed); // fails only without memory; then a fork is merely not watched
}

} // namespace

void join_fork_guard(ForkMember& member) {
  install();
  const std::scoped_lock lock(guard().members_mutex);
  guard().members.push_back(&member);
}

void leave_fork_guard(ForkMember& member) noexcept {
  const std::scoped_lock lock(guard().members_mutex);
  std::erase(guard().members, &member);
}

LockDescriptor open_lock_file(const char* path) noexcept {
  try {
    install();
    Guard& g = guard();
    const std::scoped_lock lock(g.locks_mutex); // no fork between opening and remembering
    g.lock_descriptors.reserve(g.lock_descriptors.size() + 1);
    // The umask decides whether others of a shared directory may take part.
    const int descriptor = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor >= 0) g.lock_descriptors.push_back(descriptor);
    return {descriptor, g.generation};
  } catch (const std::bad_alloc&) {
    return {};
  }
}

void close_lock_file(LockDescriptor lock, void (*unlock)(int, std::int64_t), std::int64_t offset) noexcept {
  Guard& g = guard();
  const std::scoped_lock hold(g.locks_mutex);
  if (lock.descriptor < 0 || lock.generation != g.generation) return;
  std::erase(g.lock_descriptors, lock.descriptor);
  unlock(lock.descriptor, offset);
  ::close(lock.descriptor);
}

} // namespace bilogp::cache
