// TensorView: a non-owning view of a tensor on some device, and its conversion from DLPack.
//
// A view is a plain value: copying it copies no data. It never frees anything, and the memory behind it must outlive
// every call (and, on a GPU, every launch) that uses it. Inputs are never written, although `data` is not const.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "bilogp/error.hpp"
#include "bilogp/export.hpp"

namespace bilogp::inline v1 {

enum class DType : std::uint8_t { float32 = 0, float16 = 1, bfloat16 = 2, int32 = 3, int64 = 4 };

// "float32", "float16", "bfloat16", "int32", "int64"
BILOGP_API std::string_view to_string(DType dtype) noexcept;
// Bytes per element.
constexpr std::int64_t size_of(DType dtype) noexcept {
  return dtype == DType::int64 ? 8 : dtype == DType::float32 || dtype == DType::int32 ? 4 : 2;
}

// The values are DLPack's.
enum class DeviceType : std::int32_t { cpu = 1, cuda = 2, hip = 10 };

struct Device {
  DeviceType type = DeviceType::cpu;
  std::int32_t index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

struct TensorView {
  static constexpr int max_rank = 8;

  void* data = nullptr; // null means "no tensor" for optional arguments
  DType dtype = DType::float32;
  std::int32_t rank = 0;
  std::int64_t shape[max_rank] = {};   // elements
  std::int64_t strides[max_rank] = {}; // elements, may be 0 on inputs
  Device device;

  // A row-major view. Throws invalid_argument for more than max_rank dimensions or a negative extent.
  static BILOGP_API TensorView contiguous(const void* data, DType dtype, std::initializer_list<std::int64_t> shape,
                                          Device device = {});
  static BILOGP_API TensorView strided(const void* data, DType dtype, std::initializer_list<std::int64_t> shape,
                                       std::initializer_list<std::int64_t> strides, Device device = {});

  [[nodiscard]] bool present() const noexcept { return rank > 0 || data != nullptr; }
  // Product of the shape; 0 when any extent is 0.
  [[nodiscard]] std::int64_t elements() const noexcept {
    std::uint64_t n = 1; // unsigned: beside an extent of 0 the others may be anything
    for (int i = 0; i < rank; ++i) n *= static_cast<std::uint64_t>(shape[i]);
    return static_cast<std::int64_t>(n);
  }
};

// The fields of DLPack 1.x's DLTensor, in its layout; declared here so that no header has to be installed.
namespace dlpack {
struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};
struct DLDataType {
  std::uint8_t code; // 0 int, 1 unsigned, 2 float, 4 bfloat
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides; // null means row-major
  std::uint64_t byte_offset;
};
} // namespace dlpack

// Views a DLPack tensor. Throws invalid_argument for a dtype, device or rank that bilogp does not know, a negative
// extent, or a null shape. Never calls a deleter.
BILOGP_API TensorView from_dlpack(const dlpack::DLTensor& tensor);

// The same for DLPack's own struct, whichever header declared it.
template<class Tensor>
TensorView from_dlpack(const Tensor& tensor)
  requires requires { tensor.dtype.lanes, tensor.byte_offset, tensor.ndim; }
{
  return from_dlpack(dlpack::DLTensor{
      tensor.data,
      {static_cast<std::int32_t>(tensor.device.device_type), tensor.device.device_id},
      tensor.ndim,
      {tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes},
      tensor.shape,
      tensor.strides,
      tensor.byte_offset,
  });
}

} // namespace bilogp::inline v1
