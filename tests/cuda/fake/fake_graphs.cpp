// The fake driver: captures, graphs and what they own.
#include <utility>

#include "tests/cuda/fake/fake_driver_internal.hpp"

namespace fake {
namespace {

using Destroy = void (*)(void*);
struct UserObject {
  void* pointer;
  Destroy destroy;
  unsigned references;
};

void release(UserObject* object, unsigned count) {
  object->references -= count;
  if (object->references > 0) return;
  object->destroy(object->pointer);
  delete object;
}

void destroy(const Graph* graph) {
  for (void* const object : graph->objects) release(static_cast<UserObject*>(object), 1);
  delete graph;
}

} // namespace
} // namespace fake

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace fake;

extern "C" {

Result cuStreamBeginCapture_v2(void* stream, CaptureMode mode) {
  const std::scoped_lock lock(all().mutex);
  Stream* const captured = stream_of(stream);
  captured->capture = ++all().last_id;
  captured->mode = mode;
  captured->graph = new Graph;
  if (mode == CaptureMode::global) ++all().captures_of_all_threads;
  return Result::success;
}
Result cuStreamEndCapture(void* stream, void** graph) {
  const std::scoped_lock lock(all().mutex);
  Stream* const captured = stream_of(stream);
  if (captured->mode == CaptureMode::global) --all().captures_of_all_threads;
  *graph = captured->graph;
  captured->capture = 0;
  captured->graph = nullptr;
  return Result::success;
}
Result cuGraphDestroy(const Graph* graph) {
  destroy(graph);
  return Result::success;
}
// An executable is a graph of its own.
Result cuGraphInstantiateWithFlags(Graph** executable, const Graph* graph, unsigned long long) {
  for (void* const object : graph->objects) ++static_cast<UserObject*>(object)->references;
  *executable = new Graph(*graph);
  return Result::success;
}
Result cuGraphLaunch(const Graph* executable, void* stream) {
  const std::scoped_lock lock(all().mutex);
  if (stream_of(stream) == nullptr) return Result::invalid_handle;
  for (const Work& work : executable->work)
    if (const Result result = work(); result != Result::success) return result;
  return Result::success;
}
Result cuGraphExecDestroy(const Graph* executable) {
  destroy(executable);
  return Result::success;
}
Result cuStreamIsCapturing(void* stream, CaptureStatus* status) {
  if (const Result result = begin("cuStreamIsCapturing"); result != Result::success) return result;
  const std::scoped_lock lock(all().mutex);
  if (stream_of(stream) == nullptr) return Result::invalid_handle;
  *status = stream_of(stream)->capture != 0 ? CaptureStatus::active : CaptureStatus::none;
  return Result::success;
}
Result cuStreamGetCaptureInfo_v2(void* stream, CaptureStatus* status, std::uint64_t* id, void** graph, const void**,
                                 std::size_t*) {
  if (const Result result = cuStreamIsCapturing(stream, status); result != Result::success) return result;
  const std::scoped_lock lock(all().mutex);
  *id = stream_of(stream)->capture;
  *graph = stream_of(stream)->graph;
  return Result::success;
}
Result cuThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  std::swap(*mode, thread_mode());
  return begin("cuThreadExchangeStreamCaptureMode");
}

Result cuUserObjectCreate(UserObject** object, void* pointer, Destroy destroy, unsigned count, unsigned) {
  if (const Result result = begin("cuUserObjectCreate"); result != Result::success) return result;
  *object = new UserObject{pointer, destroy, count};
  return Result::success;
}
Result cuUserObjectRelease(UserObject* object, unsigned count) {
  release(object, count);
  return begin("cuUserObjectRelease");
}
Result cuGraphRetainUserObject(Graph* graph, UserObject* object, unsigned, unsigned) {
  if (const Result result = begin("cuGraphRetainUserObject"); result != Result::success) return result;
  graph->objects.push_back(object);
  return Result::success;
}

} // extern "C"
// NOLINTEND(readability-identifier-naming)
