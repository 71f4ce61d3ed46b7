// What a fork does to the store: every operation in flight ends before it, and the child lets go of its parent's
// connections and key locks (it must not close the ones nor release the others) and opens its own on demand.
#pragma once

#include <cstdint>

namespace bilogp::cache {

class ForkMember {
public:
  virtual void before_fork() noexcept = 0; // lock
  virtual void after_fork_in_parent() noexcept = 0;
  virtual void after_fork_in_child() noexcept = 0;

protected:
  ~ForkMember() = default;
};

void join_fork_guard(ForkMember& member);
void leave_fork_guard(ForkMember& member) noexcept;

// A descriptor of a lock file. A byte-range lock lives as long as any copy of its descriptor, so a forked child closes
// its copies at once: else the death of the parent would not free its locks.
struct LockDescriptor {
  int descriptor = -1; // -1: could not be opened
  std::uint64_t generation = 0;
};

// Opens, creating when missing; remembered for forks.
LockDescriptor open_lock_file(const char* path) noexcept;
// Calls `unlock` and closes; does nothing when opened before a fork, where the number may be somebody else's by now.
void close_lock_file(LockDescriptor lock, void (*unlock)(int descriptor, std::int64_t offset),
                     std::int64_t offset) noexcept;

} // namespace bilogp::cache
