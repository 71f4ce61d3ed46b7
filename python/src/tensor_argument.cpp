#include "tensor_argument.hpp"

#include <string>

#include "bilogp/error.hpp"
#include "known_type.hpp"
#include "numpy_arrays.hpp"
#include "python_error.hpp"

namespace nb = nanobind;

namespace bilogp::python {
namespace {

// numpy's PyArrayInterface, which its documentation freezes.
struct ArrayInterface {
  static constexpr int aligned = 0x100;
  static constexpr int native_byte_order = 0x200;
  static constexpr int writeable = 0x400;
  int two;
  int rank;
  char kind;
  int item_size;
  int flags;
  Py_ssize_t* shape;
  Py_ssize_t* strides; // bytes
  void* data;
  PyObject* description;
};

std::string class_of(nb::handle object) {
  return nb::cast<std::string>(object.type().attr("__name__"));
}

std::string dtype_text(nb::handle object) {
  return nb::cast<std::string>(nb::str(nb::getattr(object, "dtype", nb::str("of an unknown dtype"))));
}

// What an argument may be, by its name: ids, logits, and float32 or int32 for the rest.
std::string expected_dtypes(const std::string& name) {
  if (name == "target_ids") return "int32 or int64 (convert the ids with .astype('int64'), or .long() in torch)";
  if (name == "nodes" || name == "row_state") return "int32, as bilogp gave it";
  if (name == "logits" || name == "grad_logits")
    return "float32, float16 or bfloat16 (convert with .astype('float32'), or .float() in torch)";
  return "float32";
}

bool may_be(std::string_view name, DType dtype) {
  if (name == "target_ids") return dtype == DType::int32 || dtype == DType::int64;
  if (name == "nodes" || name == "row_state") return dtype == DType::int32;
  if (name == "logits" || name == "grad_logits" || name == "out") return dtype != DType::int32 && dtype != DType::int64;
  return dtype == DType::float32;
}

[[noreturn]] void wrong_dtype(const std::string& name, const std::string& given) {
  throw WrongType(name + " is " + given + "; expected " + expected_dtypes(name));
}

DType dtype_of(const std::string& name, const ArrayInterface& array, nb::handle object) {
  if (array.kind == 'f' && array.item_size == 4) return DType::float32;
  if (array.kind == 'f' && array.item_size == 2) return DType::float16;
  if (array.kind == 'i' && array.item_size == 8) return DType::int64;
  if (array.kind == 'i' && array.item_size == 4) return DType::int32;
  if (array.kind == 'V' && array.item_size == 2 && dtype_text(object) == "bfloat16") return DType::bfloat16;
  wrong_dtype(name, dtype_text(object));
}

[[noreturn]] void not_usable(const std::string& sentence) {
  throw Error(ErrorKind::invalid_argument, sentence);
}

void check_access(const std::string& name, bool writable, Access access) {
  if (access == Access::write && !writable)
    not_usable(name + " is read-only; expected memory that can be written (copy it, or pass another array)");
}

void make_row_major(TensorView& view) {
  std::int64_t stride = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    view.strides[d] = stride;
    stride *= view.shape[d] > 0 ? view.shape[d] : 1;
  }
}

int set_shape(TensorView& view, const std::string& name, int rank) {
  if (rank > TensorView::max_rank)
    not_usable(name + " has " + std::to_string(rank) + " dimensions; expected at most " +
               std::to_string(TensorView::max_rank));
  return view.rank = rank;
}

TensorView view_of(const std::string& name, const dlpack::DLTensor& tensor, nb::handle object) {
  const bool known =
      tensor.dtype.lanes == 1 && ((tensor.dtype.code == 2 && (tensor.dtype.bits == 32 || tensor.dtype.bits == 16)) ||
                                  (tensor.dtype.code == 4 && tensor.dtype.bits == 16) ||
                                  (tensor.dtype.code == 0 && (tensor.dtype.bits == 32 || tensor.dtype.bits == 64)));
  if (!known) {
    std::string given = dtype_text(object);
    if (given.starts_with("torch.")) given = given.substr(6);
    wrong_dtype(name, given);
  }
  return from_dlpack(tensor);
}

bool is_true(nb::handle object, const char* attribute) {
  return nb::getattr(object, attribute, nb::none()).ptr() == Py_True;
}

// The array's own refusal: a sparse tensor, one of the meta device, one that is only traced.
[[noreturn]] void refused(const std::string& name, nb::handle object, const nb::python_error& error) {
  for (PyObject* const kind : {PyExc_RuntimeError, PyExc_BufferError, PyExc_TypeError, PyExc_ValueError}) {
    if (!error.matches(kind)) continue;
    const std::string why = nb::cast<std::string>(nb::str(error.value()));
    not_usable(name + ", of type " + class_of(object) + ", cannot be read where it lies (" +
               why.substr(0, why.find('\n')) + "); expected a dense array in the memory of a CPU or GPU");
  }
  throw error; // an interrupt, say
}

// What torch knows of a tensor besides its memory. The imaginary part of a conjugate it negates whenever it reads it;
// such a view is never dense.
void check_torch(const std::string& name, const TensorView& view, nb::handle object, Access access) {
  if (access == Access::write && name == "out" && is_true(object, "requires_grad"))
    not_usable("out requires a gradient; pass a tensor that does not, or out.detach()");
  if (view.rank > 0 && view.strides[view.rank - 1] == 1) return;
  const nb::object is_negated = nb::getattr(object, "is_neg", nb::none());
  if (!is_negated.is_none() && is_negated().ptr() == Py_True)
    not_usable(name + " is a view that torch negates whenever it is read; make it an ordinary one with .resolve_neg()");
}

bool is_on_gpu(nb::handle object) {
  const nb::object device = nb::getattr(object, "__dlpack_device__", nb::none());
  if (device.is_none()) return false;
  const long type = PyLong_AsLong(nb::object(device()[0]).ptr());
  if (type == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return type == static_cast<long>(DeviceType::cuda) || type == static_cast<long>(DeviceType::hip);
}

// jax's capsules do not say that nobody may write there, and on a GPU wait for streams that are none.
void check_jax(const std::string& name, nb::handle object, Access access) {
  check_access(name, false, access);
  try {
    if (!is_on_gpu(object)) return;
  } catch (const nb::python_error& error) {
    refused(name, object, error); // one that is only traced
  }
  throw Error(ErrorKind::unsupported,
              name + " is a jax array on a GPU; expected one on a CPU, or arrays of torch or cupy");
}

// The call is queued on the array's own current stream: a GPU's array is told that there is no other to wait for.
nb::object dlpack_capsule(nb::handle object, nb::handle method) {
  nb::dict keywords;
  if (is_on_gpu(object)) keywords["stream"] = -1;
  keywords["max_version"] = nb::make_tuple(1, 0);
  try {
    return method(**keywords);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  nb::del(keywords["max_version"]); // of DLPack before 1.0
  return method(**keywords);
}

} // namespace

TensorArgument::TensorArgument(const char* name, nb::handle object, Access access) : object_(object) {
  const KnownType& known = known_type(object.ptr());
  NumpyView numpy;
  if (known.is_jax) check_jax(name, object, access);
  if (known.is_masked)
    throw WrongType(std::string(name) + " is a masked array, whose mask would be ignored; pass its .data, and rows "
                                        "to leave out with target_ids of ignore_index");
  if (known.is_numpy && view_of_numpy(object.ptr(), numpy)) {
    view_ = numpy.view;
    check_access(name, numpy.writable, access);
  } else if (known.has_array_interface) {
    read_array_interface(name, access);
    if (known.is_numpy && view_.dtype == DType::bfloat16) remember_bfloat16(object.ptr());
  } else if (known.exchange != nullptr) {
    exchange_ = known.exchange;
    read_exchange(name, access);
  } else {
    read_dlpack(name, access);
  }
  if (view_.elements() == 0) make_row_major(view_); // whose strides numpy leaves at 0
  if (!may_be(name, view_.dtype)) wrong_dtype(name, std::string(to_string(view_.dtype)));
}

void TensorArgument::read_array_interface(const char* name, Access access) {
  owner_ = object_.attr("__array_struct__");
  const auto* array = static_cast<const ArrayInterface*>(PyCapsule_GetPointer(owner_.ptr(), nullptr));
  if (array == nullptr) throw nb::python_error();
  view_.dtype = dtype_of(name, *array, object_);
  if ((array->flags & ArrayInterface::native_byte_order) == 0)
    throw WrongType(std::string(name) + " has the other byte order, " + dtype_text(object_) +
                    "; expected this machine's (convert it with .astype(array.dtype.newbyteorder('=')))");
  check_access(name, (array->flags & ArrayInterface::writeable) != 0, access);
  if ((array->flags & ArrayInterface::aligned) == 0)
    not_usable(std::string(name) + " does not lie at a multiple of its elements' size; make a copy of it");
  const std::int64_t item = array->item_size;
  for (int d = 0, rank = set_shape(view_, name, array->rank); d < rank; ++d) {
    view_.shape[d] = array->shape[d];
    if (array->strides[d] % item != 0 && array->shape[d] > 1)
      not_usable(std::string(name) + " has a stride of " + std::to_string(array->strides[d]) + " bytes in dimension " +
                 std::to_string(d) + "; expected a multiple of its elements' " + std::to_string(item) + " bytes");
    view_.strides[d] = array->strides[d] / item;
  }
  view_.data = array->data;
}

void TensorArgument::read_exchange(const char* name, Access access) {
  dlpack::DLTensor tensor{};
  if (exchange_->view_from_python(object_.ptr(), &tensor) != 0) refused(name, object_, nb::python_error());
  view_ = view_of(name, tensor, object_);
  check_torch(name, view_, object_, access);
}

void TensorArgument::read_dlpack(const char* name, Access access) {
  nb::object object = nb::borrow(object_);
  if (is_true(object, "requires_grad")) object = object.attr("detach")(); // torch exports no other
  const nb::object method = nb::getattr(object, "__dlpack__", nb::none());
  if (method.is_none())
    throw WrongType(std::string(name) + " is of type " + class_of(object_) +
                    "; expected an array of numpy, torch, cupy or jax, or anything with __dlpack__");
  try {
    owner_ = dlpack_capsule(object, method);
  } catch (const nb::python_error& error) {
    refused(name, object_, error);
  }
  if (PyCapsule_IsValid(owner_.ptr(), "dltensor_versioned") != 0) {
    const auto* managed =
        static_cast<DlpackManagedVersioned*>(PyCapsule_GetPointer(owner_.ptr(), "dltensor_versioned"));
    if (managed->version.major != 1)
      not_usable(std::string(name) + " comes as DLPack " + std::to_string(managed->version.major) +
                 "; expected version 0 or 1");
    check_access(name, (managed->flags & DlpackManagedVersioned::read_only) == 0, access);
    view_ = view_of(name, managed->tensor, object_);
  } else if (PyCapsule_IsValid(owner_.ptr(), "dltensor") != 0) {
    view_ = view_of(name, static_cast<DlpackManaged*>(PyCapsule_GetPointer(owner_.ptr(), "dltensor"))->tensor, object_);
  } else {
    throw WrongType(std::string(name) + " has a __dlpack__ that gives no DLPack capsule");
  }
  check_torch(name, view_, object_, access);
}

} // namespace bilogp::python
