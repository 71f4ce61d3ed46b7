#include "runtime/backends/cuda/devices.hpp"

#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cuda/contexts.hpp"

namespace bilogp::cuda {
namespace {

constexpr std::size_t error_word_bytes = 32;

int attribute(const Driver& driver, DeviceOrdinal device, DeviceAttribute which) {
  int value = 0;
  check(driver, driver.device_get_attribute(&value, which, device), "asking a device for its limits");
  return value;
}

int capability_of(const Driver& driver, DeviceOrdinal device) {
  return 10 * attribute(driver, device, DeviceAttribute::compute_capability_major) +
         attribute(driver, device, DeviceAttribute::compute_capability_minor);
}

DeviceLimits limits_of(const Driver& driver, DeviceOrdinal device) {
  DeviceLimits limits;
  limits.capability = capability_of(driver, device);
  limits.multiprocessors = attribute(driver, device, DeviceAttribute::multiprocessor_count);
  limits.threads_per_multiprocessor = attribute(driver, device, DeviceAttribute::max_threads_per_multiprocessor);
  limits.shared_per_block = attribute(driver, device, DeviceAttribute::max_shared_memory_per_block_optin);
  limits.shared_per_multiprocessor = attribute(driver, device, DeviceAttribute::max_shared_memory_per_multiprocessor);
  limits.l2_bytes = attribute(driver, device, DeviceAttribute::l2_cache_size);
  limits.has_clusters =
      has_hopper_plans(limits.capability) && attribute(driver, device, DeviceAttribute::cluster_launch) != 0;
  return limits;
}

DeviceOrdinal handle_of(const Driver& driver, int ordinal) {
  int count = 0;
  check(driver, driver.device_get_count(&count), "counting the CUDA devices");
  if (ordinal < 0 || ordinal >= count || ordinal >= largest_device_count)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a tensor is on cuda:{}, but this process sees {} CUDA device(s); check the tensor's "
                            "device index and CUDA_VISIBLE_DEVICES",
                            ordinal, count));
  DeviceOrdinal device = 0;
  check(driver, driver.device_get(&device, ordinal), "opening a CUDA device");
  return device;
}

} // namespace

std::atomic<Device*> Device::devices_[largest_device_count] = {};

int device_count(std::string* why) noexcept {
  const Driver* const found = try_driver(why);
  int count = 0;
  if (found != nullptr && found->device_get_count(&count) != Result::success) count = 0;
  return count;
}

DeviceFacts device_facts(int ordinal) {
  const Driver& driver = cuda::driver();
  const DeviceOrdinal device = handle_of(driver, ordinal);
  DeviceFacts facts;
  char name[256] = {};
  check(driver, driver.device_get_name(name, sizeof name, device), "asking a device for its name");
  facts.name = name;
  facts.capability = capability_of(driver, device);
  unsigned flags = 0;
  int active = 0;
  check(driver, driver.primary_context_get_state(device, &flags, &active), "asking for a device's state");
  facts.is_active = active != 0;
  return facts;
}

Device::Device(const Driver& driver, int ordinal) : driver_(driver), ordinal_(ordinal), scratch_(driver) {
  const DeviceOrdinal device = handle_of(driver, ordinal);
  limits_ = limits_of(driver, device);
  largest_cluster_ = limits_.largest_cluster;
  target_ = target_of_capability(limits_.capability);
  check(driver, driver.primary_context_retain(&context_, device), "opening the device's primary context");
  try {
    const CurrentContext current(driver, context_);
    const OutsideCaptures outside(driver);
    check(driver, driver.stream_create(&own_stream_, stream_non_blocking), "making a stream");
    check(driver, driver.memory_allocate(&error_words_, error_word_bytes), "allocating the error words");
    check(driver, driver.fill_words(error_words_, 0, error_word_bytes / 4, own_stream_), "clearing the error words");
    check(driver, driver.stream_synchronize(own_stream_), "clearing the error words");
  } catch (...) { // the context may live on, held by others: nothing of ours stays in it
    if (own_stream_ != nullptr) {
      const CurrentContext current(driver, context_);
      if (error_words_ != 0) driver.memory_free(error_words_);
      driver.stream_destroy(own_stream_);
    }
    driver.primary_context_release(device);
    throw;
  }
}

void Device::refuse_clusters(int blocks) noexcept {
  int largest = largest_cluster_.load(std::memory_order_relaxed);
  while (largest >= blocks && !largest_cluster_.compare_exchange_weak(largest, blocks - 1, std::memory_order_relaxed)) {
  }
}

int Device::lone_clusters(unsigned blocks, Function function, LaunchConfig config) noexcept {
  if (blocks >= lone_clusters_.size()) return 0;
  int known = lone_clusters_[blocks].load(std::memory_order_relaxed);
  if (known == 0) {
    config.shared_bytes = static_cast<unsigned>(limits_.shared_per_block);
    int count = 0;
    const bool is_told = driver_.occupancy_clusters(&count, function, &config) == Result::success && count > 0;
    known = is_told ? count : -1;
    lone_clusters_[blocks].store(known, std::memory_order_relaxed);
  }
  return std::max(known, 0);
}

Device& Device::open(int ordinal) {
  const Driver& driver = cuda::driver();
  handle_of(driver, ordinal); // so that the number is good for the array
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  std::atomic<Device*>& slot = devices_[ordinal];
  if (Device* const device = slot.load(std::memory_order_acquire)) return *device;
  auto* const device = new Device(driver, ordinal); // never destroyed: kernels may run during static destruction
  slot.store(device, std::memory_order_release);
  return *device;
}

void Device::take_errors(std::int64_t words[3]) {
  const std::scoped_lock lock(taking_errors_);
  const CurrentContext current(driver_, context_);
  const OutsideCaptures outside(driver_);
  check(driver_, driver_.copy_to_host(words, error_words_, 3 * sizeof words[0], own_stream_),
        "reading the error words");
  check(driver_, driver_.stream_synchronize(own_stream_), "reading the error words");
  if (words[0] == 0) return;
  // The count alone: with it at 0 the others say nothing, and the fourth word is the kernels' lock.
  check(driver_, driver_.fill_words(error_words_, 0, 2, own_stream_), "clearing the error words");
  check(driver_, driver_.stream_synchronize(own_stream_), "clearing the error words");
}

} // namespace bilogp::cuda
