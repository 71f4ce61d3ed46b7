// The one exception type of bilogp, and where its warnings go.
//
// Thread-safety: everything here may be called from any thread.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "bilogp/export.hpp"

namespace bilogp::inline v1 {

// What kind of thing went wrong. The set is closed: new kinds need a new major version.
enum class ErrorKind {
  invalid_argument = 1, // a wrong rank, dtype, shape, stride, pointer or option
  out_of_range = 2,     // a target id outside [0, vocab_size) with validation on
  unsupported = 3,      // something known that this build or this machine cannot do
  compile_failed = 4,   // the compiler refused a kernel, or is not installed
  device = 5,           // the device or its driver reported an error
  out_of_memory = 6,
  io = 7,    // a file could not be read or written
  cache = 8, // the kernel store was asked for something it cannot do
};

// "invalid_argument", "out_of_range", ...
BILOGP_API std::string_view to_string(ErrorKind kind) noexcept;

// what() is one sentence: what was given, what was expected, what to do.
class BILOGP_API Error : public std::runtime_error {
public:
  Error(ErrorKind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}
  ~Error() override;
  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }

private:
  ErrorKind kind_;
};

// Receives one warning, without a trailing newline. It may be called from any thread and must not throw.
using LogCallback = std::function<void(std::string_view sentence)>;

// Replaces the receiver of warnings; an empty callback restores the default, one line on stderr.
BILOGP_API void set_log_callback(LogCallback callback);

} // namespace bilogp::inline v1
