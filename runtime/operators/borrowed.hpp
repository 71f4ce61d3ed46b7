// Memory of the calling thread, grown and kept, so that a call allocates nothing after the first.
#pragma once

#include <utility>

namespace bilogp {

// Taken away while it is in use: a caller's executor may run another call on this thread before this one's work is
// done. One kept T per type and thread.
template<class T> class Borrowed {
public:
  Borrowed() { std::swap(value_, kept()); }
  ~Borrowed() { std::swap(value_, kept()); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  T& operator*() { return value_; }
  T* operator->() { return &value_; }

private:
  static T& kept() {
    static thread_local T value;
    return value;
  }
  T value_;
};

} // namespace bilogp
