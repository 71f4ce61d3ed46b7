// bilogp._core: the library for Python. bilogp/_api.py is what people call.
#include <nanobind/nanobind.h>

#include "operators.hpp"
#include "python_error.hpp"

NB_MODULE(_core, module) {
  bilogp::python::register_errors();
  bilogp::python::register_warnings();
  bilogp::python::bind_rows(module);
  bilogp::python::bind_shards(module);
  bilogp::python::bind_reports(module);
}
