#include "outputs.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "bilogp/error.hpp"
#include "known_type.hpp"
#include "numpy_arrays.hpp"

namespace nb = nanobind;

namespace bilogp::python {
namespace {

class Extents {
public:
  explicit Extents(const OutputShape& shape) : rank_(shape.rank + (shape.tail >= 0 ? 1 : 0)) {
    for (int d = 0; d < rank_; ++d) extents_[d] = d < shape.rank ? shape.like.shape[d] : shape.tail;
  }
  std::span<std::int64_t> all() { return {extents_, static_cast<std::size_t>(rank_)}; }

private:
  int rank_;
  std::int64_t extents_[TensorView::max_rank + 1]; // of which the first rank_ are set
};

dlpack::DLDataType dlpack_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  if (dtype == DType::bfloat16) return {4, bits, 1};
  const bool is_integer = dtype == DType::int32 || dtype == DType::int64;
  return {static_cast<std::uint8_t>(is_integer ? 0 : 2), bits, 1};
}

void set_error(void* context, const char* kind, const char* message) {
  *static_cast<std::string*>(context) = std::string(kind) + ": " + message;
}

nb::object new_exchanged(const TensorArgument& model, std::span<std::int64_t> shape, DType dtype) {
  const Device device = model.view().device;
  dlpack::DLTensor prototype{};
  prototype.device = {static_cast<std::int32_t>(device.type), device.index};
  prototype.ndim = static_cast<std::int32_t>(shape.size());
  prototype.dtype = dlpack_type(dtype);
  prototype.shape = shape.data();
  DlpackManagedVersioned* made = nullptr;
  std::string why;
  if (model.exchange()->allocate(&prototype, &made, &why, set_error) != 0)
    throw Error(ErrorKind::out_of_memory, "the result could not be allocated (" + why + ")");
  void* object = nullptr;
  if (model.exchange()->managed_to_python(made, &object) != 0) throw nb::python_error();
  return nb::steal(static_cast<PyObject*>(object));
}

nb::object tuple_of(std::span<const std::int64_t> numbers) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(numbers[i]));
  return tuple;
}

// torch's names, looked up once.
struct Torch {
  nb::object empty_strided; // the fastest of its makers
  nb::object dtypes[5];     // by DType

  static const Torch& get() {
    static const auto* const instance = new Torch;
    return *instance;
  }

private:
  Torch() {
    const nb::module_ torch = nb::module_::import_("torch");
    empty_strided = torch.attr("empty_strided");
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16, DType::int32, DType::int64})
      dtypes[static_cast<int>(dtype)] = torch.attr(std::string(to_string(dtype)).c_str());
  }
};

// On a GPU torch's own allocator must know the memory: of what comes through DLPack its graph trees want nothing, and
// Tensor.record_stream would silently do nothing.
nb::object new_torch(const TensorArgument& model, std::span<const std::int64_t> shape, DType dtype) {
  std::int64_t strides[TensorView::max_rank + 1];
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= std::max<std::int64_t>(1, shape[d])) strides[d] = stride;
  const Torch& torch = Torch::get();
  return torch.empty_strided(tuple_of(shape), tuple_of({strides, shape.size()}),
                             nb::arg("dtype") = torch.dtypes[static_cast<int>(dtype)],
                             nb::arg("device") = model.object().attr("device"));
}

} // namespace

nb::object new_array(const TensorArgument& model, const OutputShape& shape, DType dtype) {
  Extents extents(shape);
  const KnownType& known = known_type(model.object().ptr());
  if (known.is_numpy) return new_numpy(extents.all(), dtype);
  if (known.is_torch && model.view().device.type != DeviceType::cpu) return new_torch(model, extents.all(), dtype);
  if (model.exchange() != nullptr) return new_exchanged(model, extents.all(), dtype);
  nb::list list;
  for (const std::int64_t extent : extents.all()) list.append(extent);
  const nb::object empty = nb::module_::import_("bilogp._arrays").attr("empty_like");
  return empty(model.object(), list, nb::str(to_string(dtype).data(), to_string(dtype).size()));
}

} // namespace bilogp::python
