// The CUDA devices that this process sees, numbered as the driver numbers them: CUDA_VISIBLE_DEVICES and slices of a
// card (MIG) included.
//
// Thread-safety: everything here may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "runtime/backends/cuda/driver.hpp"
#include "runtime/backends/cuda/plans.hpp"
#include "runtime/backends/cuda/scratch.hpp"
#include "runtime/backends/cuda/targets.hpp"

namespace bilogp::cuda {

constexpr int largest_device_count = 64;

// 0 where there is no usable driver, with the reason in `why`.
int device_count(std::string* why = nullptr) noexcept;

// What can be said of a device without making a context on it.
struct DeviceFacts {
  std::string name;       // "NVIDIA H200"
  int capability = 0;     // 90
  bool is_active = false; // somebody in this process has its primary context
};
// Throws Error(unsupported) without a driver, Error(invalid_argument) for a number beyond the devices.
DeviceFacts device_facts(int ordinal);

// A device in use. Its primary context is retained at the first use and kept to the end of the process, as the kernels
// loaded into it are; other users of that context keep their own hold on it.
class Device {
public:
  static Device& get(int ordinal) {
    Device* const device =
        ordinal >= 0 && ordinal < largest_device_count ? devices_[ordinal].load(std::memory_order_acquire) : nullptr;
    return device != nullptr ? *device : open(ordinal);
  }

  [[nodiscard]] const Driver& driver() const noexcept { return driver_; }
  [[nodiscard]] int ordinal() const noexcept { return ordinal_; }
  [[nodiscard]] Context context() const noexcept { return context_; }
  [[nodiscard]] const Target& target() const noexcept { return target_; }
  [[nodiscard]] DeviceLimits limits() const noexcept {
    DeviceLimits limits = limits_;
    limits.largest_cluster = largest_cluster_.load(std::memory_order_relaxed);
    return limits;
  }
  // Plans do without clusters of so many blocks and more from now on: a slice of a card may be too small for those that
  // its architecture has, and a compiler too old.
  void refuse_clusters(int blocks) noexcept;
  // How many clusters of so many blocks, `config`'s, run at once when each block has a multiprocessor of its own: how a
  // card's multiprocessors are grouped differs from card to card. Asked for each size at its first call, with a kernel
  // that takes all of its shared memory at launch; 0 where the driver cannot say.
  int lone_clusters(unsigned blocks, Function function, LaunchConfig config) noexcept;
  [[nodiscard]] ScratchPool& scratch() noexcept { return scratch_; }

  // The words (count, lowest row, its id, lock) that kernels write bad target ids to, in the device's memory.
  [[nodiscard]] Address error_words() const noexcept { return error_words_; }
  // Reads and clears them; the streams of the calls in question must have been synchronised.
  void take_errors(std::int64_t words[3]);

  // A stream of our own for copies; waits for nothing else.
  [[nodiscard]] Stream own_stream() const noexcept { return own_stream_; }

private:
  Device(const Driver& driver, int ordinal);
  static Device& open(int ordinal);

  const Driver& driver_;
  const int ordinal_;
  Target target_;
  Context context_ = nullptr;
  DeviceLimits limits_;
  std::atomic<int> largest_cluster_;
  std::array<std::atomic<int>, 17> lone_clusters_{}; // by blocks; -1: the driver cannot say
  Stream own_stream_ = nullptr;
  Address error_words_ = 0;
  std::mutex taking_errors_; // what one caller reads, no other may read before it is cleared
  ScratchPool scratch_;

  static std::atomic<Device*> devices_[largest_device_count];
};

} // namespace bilogp::cuda
