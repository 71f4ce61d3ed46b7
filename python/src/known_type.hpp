// What is known of a Python object by its type. Types are looked at once: they are few, and never go.
#pragma once

#include <nanobind/nanobind.h>

#include "dlpack_python.hpp"

namespace bilogp::python {

struct KnownType {
  const DlpackExchange* exchange = nullptr; // the type's table, or null
  bool has_array_interface = false;
  bool is_numpy = false; // numpy.ndarray itself, or derived from it
  bool is_masked = false;
  bool is_torch = false;
  bool is_jax = false;
};

const KnownType& known_type(PyObject* object);

} // namespace bilogp::python
