// The fake driver: memory, streams and events.
#include <cstdlib>
#include <cstring>
#include <deque>
#include <thread>

#include "tests/cuda/fake/fake_driver_internal.hpp"

namespace fake {
namespace {

struct Event {
  Stream* stream = nullptr;
};

std::deque<Stream>& streams() {
  static auto* all_streams = new std::deque<Stream>;
  return *all_streams;
}

// Of the process and of a thread: one of each per device's primary context, which is enough here.
Stream* default_stream(std::size_t which) {
  static Stream defaults[3][64];
  if (current() == nullptr) return nullptr;
  Stream& stream = defaults[which][current()->device];
  stream.context = current();
  stream.id = which == 0 ? 1 : which;
  return &stream;
}

Address& last_copied() {
  static Address address = 0;
  return address;
}

// At a multiple of 512 bytes, as a device has it.
Address allocate(int device, std::size_t bytes, int value) {
  constexpr std::size_t granule = 512;
  void* const data = std::aligned_alloc(granule, (bytes + granule) / granule * granule);
  std::memset(data, value, bytes);
  all().memory.emplace(reinterpret_cast<Address>(data), Allocation{data, bytes, device});
  return reinterpret_cast<Address>(data);
}

const Allocation* allocation_at(Address address) {
  auto after = all().memory.upper_bound(address);
  if (after == all().memory.begin()) return nullptr;
  --after;
  return address < after->first + after->second.size ? &after->second : nullptr;
}

} // namespace

CaptureMode& thread_mode() {
  static thread_local CaptureMode mode = CaptureMode::global;
  return mode;
}

Stream* stream_of(void* handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number <= 2) return default_stream(number);
  for (Stream& stream : streams())
    if (&stream == handle) return stream.id == 0 ? nullptr : &stream;
  return nullptr;
}

Result begin_unsafe(const char* function) {
  const std::scoped_lock lock(all().mutex);
  if (all().captures_of_all_threads > 0 && thread_mode() != CaptureMode::relaxed) {
    ++all().state.spoiled_captures;
    return Result::stream_capture_unsupported;
  }
  return begin(function);
}

} // namespace fake

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace fake;
namespace cuda = bilogp::cuda;

extern "C" {

// As if a kernel were running there, until the stream is waited for.
void fake_keep_busy(void* stream) {
  static_cast<Stream*>(stream)->is_busy = true;
}

// What a kernel would write where the library read from last: the count of its error words.
void fake_set_last_copied(std::int64_t value) {
  std::memcpy(reinterpret_cast<void*>(last_copied()), &value, sizeof value);
}

// Memory of a caller's, not counted as the library's.
void* fake_allocate(int device, std::size_t bytes) {
  const std::scoped_lock lock(all().mutex);
  return reinterpret_cast<void*>(allocate(device, bytes, 0));
}

// A stream of any context.
void* fake_stream(Context* context) {
  const std::scoped_lock lock(all().mutex);
  Stream& made = streams().emplace_back();
  made.context = context;
  made.id = ++all().last_id;
  return &made;
}

Result cuMemAlloc_v2(Address* address, std::size_t bytes) {
  if (const Result result = begin_unsafe("cuMemAlloc_v2"); result != Result::success) return result;
  if (current() == nullptr) return Result::invalid_context;
  const std::scoped_lock lock(all().mutex);
  const int device = current()->device;
  std::size_t in_use = 0;
  for (const auto& [begin, allocation] : all().memory)
    if (allocation.device == device) in_use += allocation.size;
  const std::size_t most = all().state.devices[static_cast<std::size_t>(device)].memory_bytes;
  if (bytes > most || in_use > most - bytes) return Result::out_of_memory;
  *address = allocate(device, bytes, 0xa5);
  ++all().state.allocations;
  ++all().state.allocated_now;
  return Result::success;
}
Result cuMemFree_v2(Address address) {
  const std::scoped_lock lock(all().mutex);
  const auto found = all().memory.find(address);
  if (found == all().memory.end()) return Result::invalid_value;
  std::free(found->second.bytes);
  all().memory.erase(found);
  --all().state.allocated_now;
  return begin_unsafe("cuMemFree_v2");
}
Result cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, void* stream) {
  if (const Result result = begin("cuMemcpyDtoHAsync_v2"); result != Result::success) return result;
  const std::scoped_lock lock(all().mutex);
  if (stream_of(stream) == nullptr || stream_of(stream)->context != current()) return Result::invalid_handle;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  last_copied() = from;
  return Result::success;
}
Result cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, void*) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return begin("cuMemcpyHtoDAsync_v2");
}
Result cuMemsetD32Async(Address address, unsigned value, std::size_t count, void* stream) {
  if (const Result result = begin("cuMemsetD32Async"); result != Result::success) return result;
  const std::scoped_lock lock(all().mutex);
  if (stream_of(stream) == nullptr || stream_of(stream)->context != current()) return Result::invalid_handle;
  for (std::size_t i = 0; i < count; ++i) std::memcpy(reinterpret_cast<char*>(address) + 4 * i, &value, 4);
  return Result::success;
}
Result cuPointerGetAttribute(void* value, cuda::PointerAttribute attribute, Address address) {
  if (const Result result = begin("cuPointerGetAttribute"); result != Result::success) return result;
  const std::scoped_lock lock(all().mutex);
  const Allocation* const allocation = allocation_at(address);
  if (allocation == nullptr) return Result::invalid_value;
  unsigned number = 0;
  if (attribute == cuda::PointerAttribute::memory_type) number = static_cast<unsigned>(cuda::MemoryType::device);
  if (attribute == cuda::PointerAttribute::device_ordinal) number = static_cast<unsigned>(allocation->device);
  std::memcpy(value, &number, sizeof number);
  return Result::success;
}

Result cuStreamCreate(void** stream, unsigned) {
  if (const Result result = begin_unsafe("cuStreamCreate"); result != Result::success) return result;
  if (current() == nullptr) return Result::invalid_context;
  const std::scoped_lock lock(all().mutex);
  Stream& made = streams().emplace_back();
  made.context = current();
  made.id = ++all().last_id;
  *stream = &made;
  ++all().state.streams_now;
  return Result::success;
}
Result cuStreamDestroy_v2(void* stream) {
  const std::scoped_lock lock(all().mutex);
  static_cast<Stream*>(stream)->id = 0;
  --all().state.streams_now;
  return begin("cuStreamDestroy_v2");
}
Result cuStreamSynchronize(void* stream) {
  std::this_thread::yield(); // others come between
  if (const Result result = begin_unsafe("cuStreamSynchronize"); result != Result::success) return result;
  const std::scoped_lock lock(all().mutex);
  if (stream_of(stream) == nullptr) return Result::invalid_handle;
  stream_of(stream)->is_busy = false;
  return Result::success;
}
Result cuStreamGetCtx(void* stream, Context** context) {
  if (const Result result = begin("cuStreamGetCtx"); result != Result::success) return result;
  const std::scoped_lock lock(all().mutex);
  if (stream_of(stream) == nullptr) return Result::invalid_handle;
  *context = stream_of(stream)->context;
  return Result::success;
}
Result cuStreamGetId(void* stream, std::uint64_t* id) {
  if (const Result result = begin("cuStreamGetId"); result != Result::success) return result;
  const std::scoped_lock lock(all().mutex);
  if (stream_of(stream) == nullptr) return Result::invalid_handle;
  *id = stream_of(stream)->id;
  return Result::success;
}

Result cuEventCreate(Event** event, unsigned) {
  if (const Result result = begin_unsafe("cuEventCreate"); result != Result::success) return result;
  ++all().state.events_now;
  *event = new Event;
  return Result::success;
}
Result cuEventRecord(Event* event, void* stream) {
  event->stream = stream_of(stream);
  return begin("cuEventRecord");
}
// Over once its stream has been waited for: whether it came before that is not looked at.
Result cuEventQuery(Event* event) {
  if (const Result result = begin_unsafe("cuEventQuery"); result != Result::success) return result;
  return event->stream != nullptr && event->stream->is_busy ? Result::not_ready : Result::success;
}
Result cuEventDestroy_v2(Event* event) {
  --all().state.events_now;
  delete event;
  return begin("cuEventDestroy_v2");
}

} // extern "C"
// NOLINTEND(readability-identifier-naming)
