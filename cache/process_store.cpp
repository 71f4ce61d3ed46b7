#include "cache/store.hpp"

#include <cstdio>
#include <mutex>
#include <utility>

namespace bilogp::cache {

namespace {

struct ProcessWarn {
  std::mutex mutex;
  Warn warn;
};

ProcessWarn& process_warn() {
  static ProcessWarn* the_warn = new ProcessWarn;
  return *the_warn;
}

void give_process_warning(std::string_view sentence) {
  Warn warn;
  {
    const std::scoped_lock lock(process_warn().mutex);
    warn = process_warn().warn;
  }
  if (warn) return warn(sentence);
  std::fprintf(stderr, "bilogp: warning: %.*s\n", static_cast<int>(sentence.size()), sentence.data());
}

} // namespace

Store& process_store() {
  // Never destroyed: kernels may be launched, and stored, by static destructors and by threads that outlive main.
  static Store* const store = new Store(default_location(), give_process_warning);
  return *store;
}

void set_process_warn(Warn warn) {
  const std::scoped_lock lock(process_warn().mutex);
  process_warn().warn = std::move(warn);
}

} // namespace bilogp::cache
