// Results in the array type that came in: numpy and torch directly, others through bilogp._arrays.
#pragma once

#include <initializer_list>
#include <string_view>

#include <nanobind/nanobind.h>

#include "bilogp/tensor.hpp"
#include "tensor_argument.hpp"

namespace bilogp::python {

// The first `rank` extents of `like`, then `tail` unless it is negative.
struct OutputShape {
  const TensorView& like;
  int rank;
  std::int64_t tail = -1;
};

// An array with undefined content, of the type and on the device of `model`.
nanobind::object new_array(const TensorArgument& model, const OutputShape& shape, DType dtype);

} // namespace bilogp::python
