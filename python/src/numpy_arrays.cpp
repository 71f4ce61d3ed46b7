#include "numpy_arrays.hpp"

#include <string>
#include <string_view>

namespace nb = nanobind;

namespace bilogp::python {
namespace {

struct Description {
  PyObject_HEAD PyTypeObject* type_object;
  char kind;
  char type;
  char byte_order;
  char former_flags;
  int type_number;
};

struct Array {
  PyObject_HEAD char* data;
  int rank;
  Py_ssize_t* shape;
  Py_ssize_t* strides; // bytes
  PyObject* base;
  Description* description;
  int flags;
};

constexpr int aligned = 0x100;
constexpr int writeable = 0x400;

// numpy's numbers of C types: on a 64-bit Linux long is int64.
constexpr int number_int = 5;
constexpr int number_long = 7;
constexpr int number_long_long = 9;
constexpr int number_float = 11;
constexpr int number_half = 23;

using AbiVersion = unsigned (*)();
using DescriptionOf = Description* (*)(int type_number);
using Empty = PyObject* (*)(int rank, const Py_ssize_t* shape, Description* stolen, int fortran_order);

struct Table {
  DescriptionOf description_of = nullptr;
  Empty empty = nullptr; // null: a numpy that is not known
};

Table find_table() {
  constexpr int index_version = 0;
  constexpr int index_description = 45;
  constexpr int index_empty = 184;
  const nb::object version = nb::module_::import_("numpy").attr("__version__");
  const bool is_first = std::string_view(nb::str(version).c_str()).starts_with("1.");
  const char* const module = is_first ? "numpy.core._multiarray_umath" : "numpy._core._multiarray_umath";
  const nb::object capsule = nb::module_::import_(module).attr("_ARRAY_API");
  auto** const functions = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (functions == nullptr) throw nb::python_error();
  const unsigned abi = reinterpret_cast<AbiVersion>(functions[index_version])();
  if (abi != 0x01000009 && abi != 0x02000000) return {};
  return {reinterpret_cast<DescriptionOf>(functions[index_description]),
          reinterpret_cast<Empty>(functions[index_empty])};
}

const Table& table() {
  static const Table found = find_table();
  return found;
}

Description* bfloat16_description = nullptr;

bool dtype_of(const Description* description, DType& dtype) noexcept {
  if (description == bfloat16_description) {
    dtype = DType::bfloat16;
    return true;
  }
  if (description->byte_order != '=') return false;
  switch (description->type_number) {
  case number_float:
    dtype = DType::float32;
    return true;
  case number_half:
    dtype = DType::float16;
    return true;
  case number_int:
    dtype = DType::int32;
    return true;
  case number_long:
  case number_long_long:
    dtype = DType::int64;
    return true;
  default:
    return false;
  }
}

int number_of(DType dtype) {
  return dtype == DType::float32   ? number_float
         : dtype == DType::float16 ? number_half
         : dtype == DType::int32   ? number_int
                                   : number_long;
}

nb::object new_by_name(std::span<const std::int64_t> shape, DType dtype) {
  nb::list extents;
  for (const std::int64_t extent : shape) extents.append(extent);
  const nb::object type = dtype == DType::bfloat16
                              ? nb::object(nb::module_::import_("ml_dtypes").attr("bfloat16"))
                              : nb::object(nb::str(to_string(dtype).data(), to_string(dtype).size()));
  return nb::module_::import_("numpy").attr("empty")(extents, type);
}

} // namespace

bool view_of_numpy(PyObject* array_object, NumpyView& out) {
  if (table().empty == nullptr) return false;
  const auto* array = reinterpret_cast<const Array*>(array_object);
  if (!dtype_of(array->description, out.view.dtype) || (array->flags & aligned) == 0 ||
      array->rank > TensorView::max_rank)
    return false;
  const std::int64_t item = size_of(out.view.dtype);
  out.view.rank = array->rank;
  for (int d = 0; d < array->rank; ++d) {
    if (array->strides[d] % item != 0) return false;
    out.view.shape[d] = array->shape[d];
    out.view.strides[d] = array->strides[d] / item;
  }
  out.view.data = array->data;
  out.writable = (array->flags & writeable) != 0;
  return true;
}

void remember_bfloat16(PyObject* array_object) {
  if (bfloat16_description != nullptr || table().empty == nullptr) return;
  bfloat16_description = reinterpret_cast<const Array*>(array_object)->description;
  Py_INCREF(reinterpret_cast<PyObject*>(bfloat16_description)); // its address must not become another's
}

nb::object new_numpy(std::span<const std::int64_t> shape, DType dtype) {
  const Table& numpy = table();
  Description* description = nullptr;
  if (numpy.empty != nullptr && dtype != DType::bfloat16) {
    description = numpy.description_of(number_of(dtype));
  } else if (numpy.empty != nullptr && bfloat16_description != nullptr) {
    description = bfloat16_description;
    Py_INCREF(reinterpret_cast<PyObject*>(description));
  }
  if (description == nullptr) return new_by_name(shape, dtype);
  static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));
  PyObject* array =
      numpy.empty(static_cast<int>(shape.size()), reinterpret_cast<const Py_ssize_t*>(shape.data()), description, 0);
  if (array == nullptr) throw nb::python_error();
  return nb::steal(array);
}

} // namespace bilogp::python
