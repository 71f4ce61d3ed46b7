// numpy's arrays by their C layout and function table, both of which numpy keeps from version to version: a call of few
// rows is spent mostly in looking at its arguments. With the GIL held.
//
// A numpy whose ABI version is not known here is served through its array interface instead, more slowly.
#pragma once

#include <span>

#include <nanobind/nanobind.h>

#include "bilogp/tensor.hpp"

namespace bilogp::python {

struct NumpyView {
  TensorView view;
  bool writable = false;
};

// False for what needs a closer look: other dtypes than ours, the other byte order, odd strides, unaligned memory.
// `array_object` is a numpy.ndarray, or of a subclass.
bool view_of_numpy(PyObject* array_object, NumpyView& out);

// Lets view_of_numpy know the dtype of this array, which was found to be ml_dtypes' bfloat16.
void remember_bfloat16(PyObject* array_object);

// A new array with undefined content.
nanobind::object new_numpy(std::span<const std::int64_t> shape, DType dtype);

} // namespace bilogp::python
