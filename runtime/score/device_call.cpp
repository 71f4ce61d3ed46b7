#include "runtime/score/device_call.hpp"

#include <algorithm>

#include "runtime/backends/cuda/contexts.hpp"
#include "runtime/backends/cuda/devices.hpp"

namespace bilogp::score {
namespace {

constexpr std::size_t granule = 256; // a tensor keeps its place within so many bytes

struct Slot { // device memory that grows and is used by one tensor of a call
  cuda::Address address = 0;
  std::size_t bytes = 0;
};

struct Placed {
  const void* host = nullptr;
  cuda::Address device = 0;
  std::size_t bytes = 0;
  bool is_output = false;
  TensorView view;
};

} // namespace

struct DeviceCall::State {
  State() : device(cuda::Device::get(0)), current(device.driver(), device.context()) {}
  ~State() {
    for (const Slot& slot : slots) device.driver().memory_free(slot.address);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  TensorView place(const TensorView& host, bool is_output);
  void grow(Slot& slot, std::size_t bytes) const;
  void check(cuda::Result result, const char* what) const { cuda::check(device.driver(), result, what); }

  cuda::Device& device;
  cuda::CurrentContext current;
  std::vector<Slot> slots;
  std::vector<Placed> placed; // of the call, each in the slot of its number
};

void DeviceCall::State::grow(Slot& slot, std::size_t bytes) const {
  if (bytes <= slot.bytes) return;
  device.driver().memory_free(slot.address);
  slot = {};
  check(device.driver().memory_allocate(&slot.address, bytes), "allocating memory for the rows");
  slot.bytes = bytes;
}

TensorView DeviceCall::State::place(const TensorView& host, bool is_output) {
  if (!host.present() || host.data == nullptr) return host;
  for (const Placed& known : placed)
    if (known.host == host.data && known.view.dtype == host.dtype) {
      TensorView view = host;
      view.data = known.view.data;
      view.device = known.view.device;
      return view;
    }
  std::int64_t last = 0; // element; strides of files and results are not negative
  for (int d = 0; d < host.rank; ++d) last += std::max<std::int64_t>(host.shape[d] - 1, 0) * host.strides[d];
  const auto size = static_cast<std::size_t>(size_of(host.dtype));
  const std::size_t bytes = static_cast<std::size_t>(last + 1) * size;
  const std::size_t shift = reinterpret_cast<std::uintptr_t>(host.data) % granule / size * size;
  if (slots.size() == placed.size()) slots.emplace_back();
  Slot& slot = slots[placed.size()];
  grow(slot, shift + bytes);
  TensorView view = host;
  view.data = reinterpret_cast<void*>(slot.address + shift);
  view.device = {DeviceType::cuda, device.ordinal()};
  if (!is_output)
    check(device.driver().copy_to_device(slot.address + shift, host.data, bytes, cuda::legacy_stream()),
          "copying rows to the device");
  placed.push_back({host.data, slot.address + shift, bytes, is_output, view});
  return view;
}

DeviceCall::DeviceCall(const Runtime& runtime) {
  if (runtime.target().starts_with("cuda")) state_ = std::make_unique<State>();
}
DeviceCall::~DeviceCall() = default;

TensorView DeviceCall::in(const TensorView& host) {
  return state_ ? state_->place(host, false) : host;
}

TensorView DeviceCall::out(const TensorView& host) {
  return state_ ? state_->place(host, true) : host;
}

void DeviceCall::wait() {
  if (state_) state_->check(state_->device.driver().stream_synchronize(cuda::legacy_stream()), "scoring rows");
}

void DeviceCall::fetch() {
  if (!state_) return;
  for (const Placed& tensor : state_->placed)
    if (tensor.is_output)
      state_->check(state_->device.driver().copy_to_host(const_cast<void*>(tensor.host), tensor.device, tensor.bytes,
                                                         cuda::legacy_stream()),
                    "copying results from the device");
  wait();
  state_->placed.clear();
}

} // namespace bilogp::score
