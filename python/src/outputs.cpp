#include "outputs.hpp"

#include <span>
#include <string>

#include "bilogp/error.hpp"
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

} // namespace

nb::object new_array(const TensorArgument& model, const OutputShape& shape, DType dtype) {
  Extents extents(shape);
  if (is_numpy(model.object().ptr())) return new_numpy(extents.all(), dtype);
  if (model.exchange() != nullptr) return new_exchanged(model, extents.all(), dtype);
  nb::list list;
  for (const std::int64_t extent : extents.all()) list.append(extent);
  const nb::object empty = nb::module_::import_("bilogp._arrays").attr("empty_like");
  return empty(model.object(), list, nb::str(to_string(dtype).data(), to_string(dtype).size()));
}

} // namespace bilogp::python
