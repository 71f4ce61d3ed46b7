// Any DLPack struct: refused with a sentence, or viewed; and any views given to calls are refused or scored. Inputs are
// the struct's fields; its memory is real only for small shapes, else null.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bilogp/bilogp.hpp"

namespace {

class Bytes {
public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  template<class Number> Number take() {
    Number number{};
    const std::size_t count = left_ < sizeof number ? left_ : sizeof number;
    std::memcpy(&number, data_, count);
    data_ += count;
    left_ -= count;
    return number;
  }

private:
  const std::uint8_t* data_;
  std::size_t left_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  std::array<std::int64_t, 8> shape{};
  std::array<std::int64_t, 8> strides{};
  bilogp::dlpack::DLTensor tensor{};
  tensor.ndim = bytes.take<std::int8_t>();
  tensor.dtype = {bytes.take<std::uint8_t>(), bytes.take<std::uint8_t>(), bytes.take<std::uint8_t>()};
  tensor.device = {bytes.take<std::int8_t>(), 0};
  const auto flags = bytes.take<std::uint8_t>();
  tensor.byte_offset = bytes.take<std::uint8_t>();
  for (std::int64_t& extent : shape) extent = (flags & 1) != 0 ? bytes.take<std::int64_t>() : bytes.take<std::int8_t>();
  for (std::int64_t& stride : strides) stride = bytes.take<std::int64_t>();
  tensor.shape = (flags & 2) != 0 ? nullptr : shape.data();
  tensor.strides = (flags & 4) != 0 ? strides.data() : nullptr;
  try {
    const bilogp::TensorView view = bilogp::from_dlpack(tensor);
    if (view.rank < 0 || view.rank > bilogp::TensorView::max_rank) std::abort();
    for (int d = 0; d < view.rank; ++d)
      if (view.shape[d] != shape[static_cast<std::size_t>(d)]) std::abort();
    // No memory, so that every call with elements is refused before it reads any; none may overflow on the way.
    bilogp::LogpArgs args;
    args.logits = args.target_ids = args.logp = view;
    args.target_ids.dtype = bilogp::DType::int64;
    args.logp.dtype = bilogp::DType::float32;
    if (view.rank > 0) args.target_ids.rank = args.logp.rank = view.rank - 1;
    bilogp::Runtime::get("cpu").logp(args);
  } catch (const bilogp::Error& error) {
    if (error.kind() != bilogp::ErrorKind::invalid_argument && error.kind() != bilogp::ErrorKind::unsupported)
      std::abort();
  }
  return 0;
}
