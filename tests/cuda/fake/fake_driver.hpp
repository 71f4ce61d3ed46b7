// A CUDA driver without a device, for tests of everything around the kernels: which devices there are, what lies where,
// what a call asks of the driver and what happens when it says no. It is a library of its own, found as the real one
// is, and stricter than that: contexts, sizes and captures are checked at every call. One build of it runs no kernels,
// another those of the plain plan, on the host model of a device (fake_model.cpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fake {

struct DeviceModel {
  const char* name = "NVIDIA H200";
  int capability = 90, multiprocessors = 132, threads_per_multiprocessor = 2048;
  int shared_per_block = 232448, shared_per_multiprocessor = 233472, l2_bytes = 60 << 20;
  int has_clusters = 1;
  int largest_cluster = 16; // that it launches
  int group = 18;           // multiprocessors that a cluster finds its place among
  std::size_t memory_bytes = std::size_t{1} << 28;
};

struct Launch {
  int device = -1;
  std::string entry, image;
  unsigned grid = 0, block = 0, cluster = 1, shared_bytes = 0;
  void* stream = nullptr;
  bool was_refused = false;
};

// A call of this function after `skipped` others answers `code`, `times` times.
struct Failure {
  std::string function;
  int code = 0, skipped = 0, times = 1;
};

struct DriverState {
  // Set before calls; the devices, before the first one.
  int version = 13000;
  int init_result = 0;
  std::vector<DeviceModel> devices;
  std::vector<Failure> failures;
  std::string refused_image; // images that contain it are invalid
  bool records = true;       // launches

  // What happened.
  std::vector<Launch> launches;
  std::atomic<int> calls = 0; // of any function
  std::atomic<int> allocations = 0, allocated_now = 0, streams_now = 0, modules_now = 0, events_now = 0;
  std::atomic<int> spoiled_captures = 0;
  std::string fault;                  // of the last kernel that did what a device leaves undefined
  std::vector<std::int64_t> retained; // by device
};

// Exported by the library as well; tests find it there.
using StateFunction = DriverState* (*)();
constexpr const char* state_function = "fake_driver_state";

} // namespace fake
