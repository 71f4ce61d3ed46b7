#include "tests/cuda/device_memory.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/backends/cuda/contexts.hpp"

namespace cuda_test {
namespace {

namespace cuda = bilogp::cuda;

constexpr std::size_t guard_bytes = 512;
constexpr unsigned char guard_value = 0xa5;
constexpr std::size_t granule = 256;

} // namespace

std::vector<bilogp::Device> devices(std::string* why_none) {
  std::vector<bilogp::Device> found;
  for (int ordinal = 0; ordinal < cuda::device_count(why_none); ++ordinal)
    found.push_back({bilogp::DeviceType::cuda, ordinal});
  return found;
}

Buffer::Buffer(const bilogp::Device& device, std::size_t bytes)
    : device_(cuda::Device::get(device.index)), bytes_(bytes) {
  const cuda::CurrentContext current(device_.driver(), device_.context());
  cuda::check(device_.driver(), device_.driver().memory_allocate(&address_, std::max<std::size_t>(bytes, 1)),
              "allocating for a test");
}

Buffer::~Buffer() {
  const cuda::CurrentContext current(device_.driver(), device_.context());
  device_.driver().memory_free(address_);
}

void Buffer::put(std::size_t offset, const void* from, std::size_t bytes) {
  const cuda::CurrentContext current(device_.driver(), device_.context());
  cuda::Stream stream = device_.own_stream();
  cuda::check(device_.driver(), device_.driver().copy_to_device(address_ + offset, from, bytes, stream), "a copy");
  cuda::check(device_.driver(), device_.driver().stream_synchronize(stream), "a copy");
}

void Buffer::get(std::size_t offset, void* to, std::size_t bytes) const {
  const cuda::CurrentContext current(device_.driver(), device_.context());
  cuda::Stream stream = device_.own_stream();
  cuda::check(device_.driver(), device_.driver().copy_to_host(to, address_ + offset, bytes, stream), "a copy");
  cuda::check(device_.driver(), device_.driver().stream_synchronize(stream), "a copy");
}

void Buffer::fill(unsigned char value) {
  const std::vector<unsigned char> bytes(bytes_, value);
  put(0, bytes.data(), bytes.size());
}

DeviceTensor::DeviceTensor(const bilogp::Device& device, const TensorView& host) : host_(host), view_(host) {
  const std::int64_t size = size_of(host.dtype);
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (int d = 0; d < host.rank; ++d) {
    const std::int64_t reach = (host.shape[d] - 1) * host.strides[d];
    (reach < 0 ? low : high) += reach;
  }
  view_.device = device;
  if (host.data == nullptr || host.elements() == 0) return;
  low_ = -low * size;
  bytes_ = static_cast<std::size_t>((high - low + 1) * size);
  const char* const span = static_cast<const char*>(host.data) - low_;
  shift_ = guard_bytes + reinterpret_cast<std::uintptr_t>(span) % granule;
  buffer_ = std::make_unique<Buffer>(device, shift_ + bytes_ + guard_bytes);
  buffer_->fill(guard_value);
  buffer_->put(shift_, span, bytes_);
  view_.data = buffer_->data() + shift_ + static_cast<std::size_t>(low_);
}

bool DeviceTensor::holds(const TensorView& host) const {
  return host.data == host_.data && host.data != nullptr && host.dtype == host_.dtype;
}

std::string DeviceTensor::bring_back() {
  if (buffer_ == nullptr) return {};
  std::vector<unsigned char> all(buffer_->bytes());
  buffer_->get(0, all.data(), all.size());
  std::copy_n(all.data() + shift_, bytes_, static_cast<unsigned char*>(host_.data) - low_);
  for (std::size_t i = 0; i < all.size(); ++i)
    if ((i < shift_ || i >= shift_ + bytes_) && all[i] != guard_value)
      return fmt::format("something wrote {} bytes {} a tensor", i < shift_ ? shift_ - i : i - shift_ - bytes_ + 1,
                         i < shift_ ? "before" : "behind");
  return {};
}

void DeviceTensor::overwrite(std::uint32_t word) {
  if (buffer_ == nullptr) return;
  std::vector<std::uint32_t> words(bytes_ / sizeof word + 1, word);
  buffer_->put(shift_, words.data(), bytes_);
}

TestStream::TestStream(const bilogp::Device& device) : device_(cuda::Device::get(device.index)) {
  const cuda::CurrentContext current(device_.driver(), device_.context());
  cuda::check(device_.driver(), device_.driver().stream_create(&stream_, cuda::stream_non_blocking), "a stream");
}

TestStream::~TestStream() {
  const cuda::CurrentContext current(device_.driver(), device_.context());
  device_.driver().stream_destroy(stream_);
}

void TestStream::wait() const {
  cuda::check(device_.driver(), device_.driver().stream_synchronize(stream_), "waiting for a stream");
}

void wait_for(const bilogp::Device& device, bilogp::cuda::Stream stream) {
  cuda::Device& used = cuda::Device::get(device.index);
  const cuda::CurrentContext current(used.driver(), used.context());
  cuda::check(used.driver(), used.driver().stream_synchronize(stream), "waiting for a stream");
}

} // namespace cuda_test
