// What the files of the fake driver share.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/backends/cuda/driver.hpp"
#include "tests/cuda/fake/fake_driver.hpp"

namespace fake {

using bilogp::cuda::Address;
using bilogp::cuda::CaptureMode;
using bilogp::cuda::CaptureStatus;
using bilogp::cuda::Result;

struct Context {
  int device = 0;
};

struct Stream {
  Context* context = nullptr;
  std::uint64_t id = 0;
  bool is_busy = false;
  std::uint64_t capture = 0; // 0: none
  CaptureMode mode = CaptureMode::global;
  void* graph = nullptr;
};

// What a launch does, once or at every replay.
using Work = std::function<Result()>;

struct Graph {
  std::vector<Work> work;
  std::vector<void*> objects; // owners of its scratch, called when it goes
};

struct Allocation {
  void* bytes;
  std::size_t size;
  int device;
};

struct Everything {
  DriverState state;
  std::recursive_mutex mutex;
  std::vector<std::unique_ptr<Context>> primary; // by device
  std::map<Address, Allocation> memory;          // by its first byte
  int captures_of_all_threads = 0;               // in progress, in global mode
  std::uint64_t last_id = 8;                     // of streams and captures; the smallest are the default streams'
};

Everything& all();
Context*& current_slot(); // the top of this thread's stack
Context* current();
Stream* stream_of(void* handle); // null for an unknown one; the default streams have objects, too
CaptureMode& thread_mode();

// Of a launch, with copies of its arguments. Null where kernels are not run; set by fake_model.cpp.
using MakeWork = Work (*)(const Launch& launch, void** arguments);
MakeWork& make_work();

// Counts a call of `function`; what it must answer, or success.
Result begin(const char* function);
// The same for what must not be done while any stream is captured in global mode, unless the thread is relaxed.
Result begin_unsafe(const char* function);

// Ordinals are not handles: whoever takes one for the other finds no device.
constexpr int first_handle = 40;

} // namespace fake
