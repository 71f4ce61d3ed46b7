// Threads of the caller's own, for calls on a CPU: in place of the library's pool where a program has one already.
#pragma once

#include <cstdint>

#include "bilogp/export.hpp"

namespace bilogp::inline v1 {

class BILOGP_API Executor {
public:
  // A piece of a call's work. It does not throw, does not wait for another piece, and leaves the floating-point mode
  // of its thread as it was.
  using Task = void (*)(void* context, std::int64_t index);

  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor();

  // How many tasks run at once, from 1 on; the work of a call is cut accordingly. Asked once per call.
  [[nodiscard]] virtual int concurrency() const = 0;

  // Runs task(context, i) once for every i in [0, count), in any order and on any threads, the calling one among them
  // or not. It returns, or throws, when none of them runs any more. What it throws reaches the caller of the operator,
  // whose outputs must not be used then.
  virtual void run(std::int64_t count, Task task, void* context) = 0;
};

} // namespace bilogp::inline v1
