// bilogp._core: the library for Python. bilogp/_api.py is what people call.
#include <nanobind/nanobind.h>

#include "operators.hpp"
#include "python_error.hpp"

NB_MODULE(_core, module) {
  // Much that is looked up once and kept belongs to one interpreter.
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0)
    throw nanobind::import_error(
        "bilogp cannot be imported in a sub-interpreter; import it in the main interpreter, or "
        "use processes");
  bilogp::python::register_errors();
  bilogp::python::register_warnings();
  bilogp::python::bind_rows(module);
  bilogp::python::bind_shards(module);
  bilogp::python::bind_reports(module);
  bilogp::python::bind_jax(module);
}
