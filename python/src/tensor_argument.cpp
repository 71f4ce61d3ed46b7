#include "tensor_argument.hpp"

#include <string>
#include <unordered_map>

#include "bilogp/error.hpp"
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

const DlpackExchange* find_exchange(nb::handle type) {
  const nb::object capsule = nb::getattr(type, DlpackExchange::attribute, nb::none());
  if (PyCapsule_IsValid(capsule.ptr(), DlpackExchange::capsule_name) == 0) return nullptr;
  const auto* table =
      static_cast<const DlpackExchange*>(PyCapsule_GetPointer(capsule.ptr(), DlpackExchange::capsule_name));
  while (table != nullptr && table->version.major > 1) table = table->previous;
  return table != nullptr && table->version.major == 1 && table->view_from_python != nullptr ? table : nullptr;
}

struct KnownType {
  const DlpackExchange* exchange = nullptr;
  bool has_array_interface = false;
  bool is_numpy = false;
};

bool derives_from_ndarray(nb::handle type) {
  const nb::object modules = nb::module_::import_("sys").attr("modules");
  const nb::object numpy = modules.attr("get")("numpy");
  if (numpy.is_none()) return false;
  return PyObject_IsSubclass(type.ptr(), nb::object(numpy.attr("ndarray")).ptr()) == 1;
}

const KnownType& known_type(PyObject* object) {
  static auto* types = new std::unordered_map<PyTypeObject*, KnownType>;
  PyTypeObject* const type = Py_TYPE(object);
  if (const auto found = types->find(type); found != types->end()) return found->second;
  const nb::handle handle(reinterpret_cast<PyObject*>(type));
  KnownType known;
  known.exchange = find_exchange(handle);
  known.has_array_interface = nb::hasattr(handle, "__array_struct__");
  known.is_numpy = derives_from_ndarray(handle);
  Py_INCREF(reinterpret_cast<PyObject*>(type)); // so that no other type gets its address
  return types->emplace(type, known).first->second;
}

nb::object dlpack_capsule(const std::string& name, nb::handle given) {
  nb::object object = nb::borrow(given);
  const nb::object requires_grad = nb::getattr(object, "requires_grad", nb::none());
  if (requires_grad.ptr() == Py_True) object = object.attr("detach")(); // torch exports no other
  const nb::object method = nb::getattr(object, "__dlpack__", nb::none());
  if (method.is_none())
    throw WrongType(name + " is of type " + class_of(object) +
                    "; expected an array of numpy, torch, cupy or jax, or anything with __dlpack__");
  // No stream: the call is queued on the array's own current stream.
  try {
    return method(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return method(); // of DLPack before 1.0
}

} // namespace

const DlpackExchange* exchange_of(PyObject* object) {
  return known_type(object).exchange;
}

bool is_numpy(PyObject* object) {
  return known_type(object).is_numpy;
}

TensorArgument::TensorArgument(const char* name, nb::handle object, Access access) : object_(object) {
  const KnownType& known = known_type(object.ptr());
  NumpyView numpy;
  if (known.is_numpy && view_of_numpy(object.ptr(), numpy)) {
    view_ = numpy.view;
    check_access(name, numpy.writable, access);
  } else if (known.has_array_interface) {
    read_array_interface(name, access);
    if (known.is_numpy && view_.dtype == DType::bfloat16) remember_bfloat16(object.ptr());
  } else if (known.exchange != nullptr) {
    exchange_ = known.exchange;
    read_exchange(name);
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

void TensorArgument::read_exchange(const char* name) {
  dlpack::DLTensor tensor{};
  if (exchange_->view_from_python(object_.ptr(), &tensor) != 0) throw nb::python_error();
  view_ = view_of(name, tensor, object_);
}

void TensorArgument::read_dlpack(const char* name, Access access) {
  owner_ = dlpack_capsule(name, object_);
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
}

std::optional<TensorArgument> optional_tensor(const char* name, nb::handle object, Access access) {
  if (object.is_none()) return std::nullopt;
  return TensorArgument(name, object, access);
}

} // namespace bilogp::python
