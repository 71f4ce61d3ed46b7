#include "bilogp/error.hpp"

#include <cstdio>
#include <mutex>

#include "runtime/log.hpp"

namespace bilogp {
inline namespace v1 {

Error::~Error() = default;

std::string_view to_string(ErrorKind kind) noexcept {
  switch (kind) {
  case ErrorKind::invalid_argument:
    return "invalid_argument";
  case ErrorKind::out_of_range:
    return "out_of_range";
  case ErrorKind::unsupported:
    return "unsupported";
  case ErrorKind::compile_failed:
    return "compile_failed";
  case ErrorKind::device:
    return "device";
  case ErrorKind::out_of_memory:
    return "out_of_memory";
  case ErrorKind::io:
    return "io";
  case ErrorKind::cache:
    return "cache";
  }
  return "unknown";
}

namespace {

struct Log {
  std::mutex mutex;
  LogCallback callback;
};

// Never destroyed: warnings may come from static destructors.
Log& the_log() {
  static Log* log = new Log;
  return *log;
}

} // namespace

void set_log_callback(LogCallback callback) {
  const std::scoped_lock lock(the_log().mutex);
  the_log().callback = std::move(callback);
}

} // namespace v1

void warn(std::string_view sentence) noexcept {
  try {
    LogCallback callback;
    {
      const std::scoped_lock lock(the_log().mutex);
      callback = the_log().callback;
    }
    if (callback) return callback(sentence);
    std::fprintf(stderr, "bilogp: warning: %.*s\n", static_cast<int>(sentence.size()), sentence.data());
  } catch (...) { // a warning that cannot be given is dropped: it must never fail a call
  }
}

} // namespace bilogp
