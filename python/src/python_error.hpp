// The library's errors and warnings as Python's.
//
// Everything here is called with the GIL held, but for the receiver of warnings, which the library may call from any
// thread: it only queues the sentence, and the Python call that is under way hands it to `warnings` when it is done. So
// no thread of the library ever waits for the interpreter, not even while that is shutting down.
#pragma once

#include <stdexcept>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace bilogp::python {

// An object of the wrong type or dtype: bilogp.WrongType, which is also a TypeError.
class WrongType : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

// Makes bilogp.Error and its subclasses, in bilogp.errors, what the library's errors arrive as.
void register_errors();
// Queues warnings from now on.
void register_warnings();

// Hands queued warnings to Python. Throws nanobind::python_error where the user turned warnings into errors.
void deliver_warnings();

} // namespace bilogp::python
