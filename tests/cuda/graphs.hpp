// Captured graphs and foreign contexts, which only the tests need of the driver.
#pragma once

#include <functional>

#include "tests/cuda/device_memory.hpp"

namespace cuda_test {

// What `work` puts into the stream, as a graph that can be replayed.
class CapturedGraph {
public:
  CapturedGraph(const TestStream& stream, const std::function<void()>& work);
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  void replay(const TestStream& stream) const;

private:
  bilogp::cuda::Device& device_;
  void* graph_ = nullptr;
  void* executable_ = nullptr;
};

// Runs `work` while the stream is captured, and throws the capture away.
void during_capture(const TestStream& stream, const std::function<void()>& work);

// A stream of a context that is not the device's primary one.
class ForeignStream {
public:
  explicit ForeignStream(const bilogp::Device& device);
  ~ForeignStream();
  ForeignStream(const ForeignStream&) = delete;
  ForeignStream& operator=(const ForeignStream&) = delete;
  [[nodiscard]] void* get() const { return stream_; }
  [[nodiscard]] void* context() const { return context_; }

private:
  void* context_ = nullptr;
  bilogp::cuda::Stream stream_ = nullptr;
};

} // namespace cuda_test
