// Memory of a device for tests: guarded on both sides, at the same place within 256 bytes as the host's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bilogp/tensor.hpp"
#include "runtime/backends/cuda/devices.hpp"

namespace cuda_test {

using bilogp::TensorView;

// The devices of this machine; empty where there are none, with the reason in `why_none`.
std::vector<bilogp::Device> devices(std::string* why_none = nullptr);

// Allocated, and freed at the end.
class Buffer {
public:
  Buffer(const bilogp::Device& device, std::size_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] char* data() const { return reinterpret_cast<char*>(address_); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // Each waits until it is done.
  void put(std::size_t offset, const void* from, std::size_t bytes);
  void get(std::size_t offset, void* to, std::size_t bytes) const;
  void fill(unsigned char value);

private:
  bilogp::cuda::Device& device_;
  bilogp::cuda::Address address_ = 0;
  std::size_t bytes_;
};

// What a host view spans, copied to the device.
class DeviceTensor {
public:
  DeviceTensor(const bilogp::Device& device, const TensorView& host);
  [[nodiscard]] const TensorView& view() const { return view_; }
  [[nodiscard]] bool holds(const TensorView& host) const; // it was made of the same memory
  // Copies back to where it came from; "" or what a guard says.
  std::string bring_back();
  // Fills what the view spans with this word.
  void overwrite(std::uint32_t word);

private:
  TensorView host_, view_;
  std::int64_t low_ = 0; // bytes before the view's pointer
  std::size_t bytes_ = 0;
  std::size_t shift_ = 0; // of the span within the buffer
  std::unique_ptr<Buffer> buffer_;
};

// A stream of a device.
class TestStream {
public:
  explicit TestStream(const bilogp::Device& device);
  ~TestStream();
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  [[nodiscard]] bilogp::cuda::Stream get() const { return stream_; }
  [[nodiscard]] bilogp::cuda::Device& device() const { return device_; }
  void wait() const;

private:
  bilogp::cuda::Device& device_;
  bilogp::cuda::Stream stream_ = nullptr;
};

void wait_for(const bilogp::Device& device, bilogp::cuda::Stream stream);

} // namespace cuda_test
