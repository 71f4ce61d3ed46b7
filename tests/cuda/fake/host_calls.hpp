// Calls of the library on the fake driver's devices.
#pragma once

#include <initializer_list>
#include <vector>

#include <dlfcn.h>

#include "bilogp/bilogp.hpp"
#include "runtime/backends/cuda/driver.hpp"
#include "tests/cuda/fake/fake_driver.hpp"
#include "tests/cuda/fake/fake_nvrtc.hpp"
#include "tests/refusal.hpp"

namespace fake {

// The devices of these tests, in their order.
constexpr int h200 = 0, slice = 1, turing = 2, consumer = 3, blackwell = 4, new_consumer = 5, second_h200 = 6;
std::vector<DeviceModel> device_models();

DriverState& driver_state();
NvrtcState& nvrtc_state();
// A function that the fake driver exports.
void* driver_function(const char* name);
template<class Function, class... Arguments> auto call_driver(const char* name, Arguments... arguments) {
  return reinterpret_cast<Function*>(driver_function(name))(arguments...);
}
void* allocate(int device, std::size_t bytes);
void* own_stream(int device);
void* foreign_stream(int device);

// Forgets what happened so far and what was to fail.
void start_over();
// Launches since then, those that were refused left out unless asked for.
std::vector<Launch> launches(bool with_refused = false);

// Rows in the memory of a device, and calls on them.
struct Rows {
  Rows(int device_index, bilogp::DType logits_dtype, std::int64_t row_count, std::int64_t columns);
  bilogp::Device device;
  bilogp::DType dtype;
  std::int64_t rows, vocab;
  void *logits, *grad, *ids, *logp, *state, *upstream, *temperatures, *nodes;

  [[nodiscard]] bilogp::TensorView view(void* data, bilogp::DType type,
                                        std::initializer_list<std::int64_t> shape) const {
    return bilogp::TensorView::contiguous(data, type, shape, device);
  }
  [[nodiscard]] bilogp::LogpArgs forward(void* stream = nullptr) const;
  [[nodiscard]] bilogp::LogpBackwardArgs backward(void* stream = nullptr) const;
  [[nodiscard]] bilogp::LogpGradientArgs with_gradient(void* stream = nullptr) const;
  [[nodiscard]] bilogp::LogpPartialArgs partial(void* stream = nullptr) const; // one shard that is the whole
  // Every operator once.
  void call_all(void* stream = nullptr) const;

private:
  // What all calls on the rows have.
  template<class Args> [[nodiscard]] Args on_rows(void* stream) const;
};

// Calls of operator new in this process so far.
std::int64_t host_allocations();

using bilogp::test::contains;
using bilogp::test::refusal;

} // namespace fake
