#include "runtime/backends/cuda/pointers.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cuda/contexts.hpp"

namespace bilogp::cuda {
namespace {

// A contiguous tensor of the same shape, to be filled element by element where the source has gaps.
std::int64_t bytes_of(const TensorView& tensor) {
  return tensor.elements() * size_of(tensor.dtype);
}

TensorView packed(const TensorView& tensor, char* bytes) {
  TensorView view = tensor;
  view.data = bytes;
  view.device = {};
  std::int64_t stride = 1;
  for (int d = tensor.rank - 1; d >= 0; --d) {
    view.strides[d] = stride;
    stride *= tensor.shape[d];
  }
  return view;
}

// Calls copy(offset in the source, offset in the packed copy, elements) for every run without gaps.
template<class Copy> void each_run(const TensorView& tensor, Copy copy) {
  int inner = tensor.rank; // dimensions from here on are one run
  std::int64_t run = 1;
  while (inner > 0 && (tensor.shape[inner - 1] == 1 || tensor.strides[inner - 1] == run)) run *= tensor.shape[--inner];
  std::int64_t index[TensorView::max_rank] = {};
  std::int64_t offset = 0;
  const std::int64_t elements = tensor.elements();
  for (std::int64_t done = 0; done < elements; done += run) {
    copy(offset, done, run);
    for (int d = inner - 1; d >= 0; --d) {
      offset += tensor.strides[d];
      if (++index[d] < tensor.shape[d]) break;
      offset -= tensor.strides[d] * tensor.shape[d];
      index[d] = 0;
    }
  }
}

} // namespace

void check_memory(const Device& device, std::string_view name, const void* data) {
  if (data == nullptr) return;
  const Driver& driver = device.driver();
  const auto address = reinterpret_cast<Address>(data);
  unsigned type = 0;
  int ordinal = -1;
  unsigned managed = 0;
  const Result known = driver.pointer_get_attribute(&type, PointerAttribute::memory_type, address);
  if (known == Result::invalid_value)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} points at plain host memory, but its device is cuda:{}; copy it there, or correct the "
                            "tensor's device",
                            name, device.ordinal()));
  check(driver, known, "asking whose memory it is");
  driver.pointer_get_attribute(&managed, PointerAttribute::is_managed, address);
  const bool is_host = type == static_cast<unsigned>(MemoryType::host);
  if (is_host || managed != 0) return;
  driver.pointer_get_attribute(&ordinal, PointerAttribute::device_ordinal, address);
  if (ordinal != device.ordinal())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} lies in the memory of cuda:{}, but its device is cuda:{}; expected the device that "
                            "holds it",
                            name, ordinal, device.ordinal()));
}

void check_stream(const Device& device, Stream stream) {
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  constexpr std::uintptr_t largest_special_handle = 2; // null, the legacy and the per-thread default stream
  if (handle <= largest_special_handle) return;
  Context context = nullptr;
  const Result result = device.driver().stream_get_context(stream, &context);
  if (is_sticky(result)) check(device.driver(), result, "asking a stream for its context");
  if (result != Result::success || context != device.context())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the stream does not belong to the primary context of cuda:{}, where the tensors are; pass "
                            "a stream of that device",
                            device.ordinal()));
}

bool is_capturing(const Device& device, Stream stream) {
  CaptureStatus status = CaptureStatus::none;
  const Result result = device.driver().stream_is_capturing(stream, &status);
  if (result == Result::stream_capture_implicit) return true;
  check(device.driver(), result, "asking a stream whether it is captured");
  return status != CaptureStatus::none;
}

HostCopy::HostCopy(const Device& device, Stream stream, const TensorView& tensor)
    : bytes_(new char[static_cast<std::size_t>(bytes_of(tensor))]), view_(packed(tensor, bytes_)) {
  const Driver& driver = device.driver();
  const OutsideCaptures outside(driver);
  const std::int64_t size = size_of(tensor.dtype);
  Result result = Result::success;
  each_run(tensor, [&](std::int64_t from, std::int64_t to, std::int64_t elements) {
    if (result == Result::success)
      result = driver.copy_to_host(bytes_ + to * size,
                                   reinterpret_cast<Address>(tensor.data) + static_cast<Address>(from * size),
                                   static_cast<std::size_t>(elements * size), stream);
  });
  if (result == Result::success) result = driver.stream_synchronize(stream);
  if (result == Result::success) return;
  delete[] bytes_;
  check(driver, result, "reading the target ids");
}

HostCopy::~HostCopy() {
  delete[] bytes_;
}

} // namespace bilogp::cuda
