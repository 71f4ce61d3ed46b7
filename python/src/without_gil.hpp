// Releases the GIL for a scope.
//
// nanobind's own guard takes it again in a destructor. CPython before 3.14 ends a daemon thread that comes back while
// the interpreter shuts down by unwinding its stack, which no destructor lets through: the process would be aborted.
// Such a thread is stopped here instead, as newer interpreters do it.
#pragma once

#include <cxxabi.h>
#include <unistd.h>

#include <nanobind/nanobind.h>

namespace bilogp::python {

class WithoutGil {
public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    try {
      PyEval_RestoreThread(state_);
    } catch (const abi::__forced_unwind&) {
      while (true) ::pause();
    }
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

private:
  PyThreadState* state_;
};

} // namespace bilogp::python
