#include "bilogp/tensor.hpp"

#include <fmt/format.h>

#include "bilogp/error.hpp"

namespace bilogp::inline v1 {

std::string_view to_string(DType dtype) noexcept {
  switch (dtype) {
  case DType::float32:
    return "float32";
  case DType::float16:
    return "float16";
  case DType::bfloat16:
    return "bfloat16";
  case DType::int32:
    return "int32";
  case DType::int64:
    return "int64";
  }
  return "unknown";
}

namespace {

void check_rank(std::int64_t rank) {
  if (rank < 0 || rank > TensorView::max_rank)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a tensor has {} dimensions; expected at most {}", rank, +TensorView::max_rank));
}

void set_extent(TensorView& view, int dimension, std::int64_t extent) {
  if (extent < 0)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("dimension {} of a tensor has the extent {}; expected 0 or more", dimension, extent));
  view.shape[dimension] = extent;
}

void set_row_major(TensorView& view) {
  std::int64_t stride = 1;
  bool fits = true;
  bool empty = false;
  for (int i = view.rank - 1; i >= 0; --i) {
    view.strides[i] = stride;
    empty = empty || view.shape[i] == 0;
    if (__builtin_mul_overflow(stride, view.shape[i] > 0 ? view.shape[i] : 1, &stride)) {
      fits = false;
      stride = 1;
    }
  }
  if (!fits && !empty)
    throw Error(ErrorKind::invalid_argument,
                "a tensor has more elements than 64 bits count; expected the shape of memory that is there");
}

DType dtype_of(const dlpack::DLDataType& type) {
  if (type.lanes == 1) {
    if (type.code == 2 && type.bits == 32) return DType::float32;
    if (type.code == 2 && type.bits == 16) return DType::float16;
    if (type.code == 4 && type.bits == 16) return DType::bfloat16;
    if (type.code == 0 && type.bits == 32) return DType::int32;
    if (type.code == 0 && type.bits == 64) return DType::int64;
  }
  throw Error(
      ErrorKind::invalid_argument,
      fmt::format("a DLPack tensor has type code {}, {} bits and {} lanes; expected float32, float16, bfloat16, "
                  "int32 or int64",
                  type.code, type.bits, type.lanes));
}

} // namespace

TensorView TensorView::contiguous(const void* data, DType dtype, std::initializer_list<std::int64_t> shape,
                                  Device device) {
  check_rank(static_cast<std::int64_t>(shape.size()));
  TensorView view;
  view.data = const_cast<void*>(data);
  view.dtype = dtype;
  view.device = device;
  for (const std::int64_t extent : shape) set_extent(view, view.rank++, extent);
  set_row_major(view);
  return view;
}

TensorView TensorView::strided(const void* data, DType dtype, std::initializer_list<std::int64_t> shape,
                               std::initializer_list<std::int64_t> strides, Device device) {
  if (shape.size() != strides.size())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a tensor has {} extents and {} strides; expected as many", shape.size(), strides.size()));
  TensorView view = contiguous(data, dtype, shape, device);
  int i = 0;
  for (const std::int64_t stride : strides) view.strides[i++] = stride;
  return view;
}

TensorView from_dlpack(const dlpack::DLTensor& tensor) {
  check_rank(tensor.ndim);
  if (tensor.ndim > 0 && tensor.shape == nullptr)
    throw Error(ErrorKind::invalid_argument, fmt::format("a DLPack tensor of {} dimensions has no shape", tensor.ndim));
  TensorView view;
  view.dtype = dtype_of(tensor.dtype);
  view.device = {static_cast<DeviceType>(tensor.device.device_type), tensor.device.device_id};
  if (view.device.type != DeviceType::cpu && view.device.type != DeviceType::cuda &&
      view.device.type != DeviceType::hip)
    throw Error(ErrorKind::invalid_argument, fmt::format("a DLPack tensor is on device type {}; expected 1 (cpu), 2 "
                                                         "(cuda) or 10 (hip)",
                                                         tensor.device.device_type));
  view.rank = tensor.ndim;
  for (int i = 0; i < view.rank; ++i) set_extent(view, i, tensor.shape[i]);
  if (tensor.strides == nullptr)
    set_row_major(view);
  else
    for (int i = 0; i < view.rank; ++i) view.strides[i] = tensor.strides[i];
  if (tensor.data != nullptr) view.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  return view;
}

} // namespace bilogp::inline v1
