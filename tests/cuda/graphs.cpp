#include "tests/cuda/graphs.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "runtime/backends/cuda/contexts.hpp"

namespace cuda_test {
namespace {

namespace cuda = bilogp::cuda;

// A function of the driver by its name.
template<class... Arguments> void call(const char* name, Arguments... arguments) {
  static void* const library = dlopen(cuda::driver().path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  auto* const function = reinterpret_cast<cuda::Result (*)(Arguments...)>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("the driver has no ") + name);
  cuda::check(cuda::driver(), function(arguments...), name);
}

constexpr int capture_thread_local = 1;

void begin_capture(const TestStream& stream) {
  call("cuStreamBeginCapture_v2", stream.get(), capture_thread_local);
}

void* end_capture(const TestStream& stream) {
  void* graph = nullptr;
  call("cuStreamEndCapture", stream.get(), &graph);
  return graph;
}

} // namespace

CapturedGraph::CapturedGraph(const TestStream& stream, const std::function<void()>& work) : device_(stream.device()) {
  const cuda::CurrentContext current(device_.driver(), device_.context());
  begin_capture(stream);
  work();
  graph_ = end_capture(stream);
  call("cuGraphInstantiateWithFlags", &executable_, graph_, 0ULL);
}

CapturedGraph::~CapturedGraph() {
  try {
    const cuda::CurrentContext current(device_.driver(), device_.context());
    call("cuGraphExecDestroy", executable_);
    call("cuGraphDestroy", graph_);
  } catch (const std::exception&) { // dropped: the test has said what went wrong
  }
}

void CapturedGraph::replay(const TestStream& stream) const {
  const cuda::CurrentContext current(device_.driver(), device_.context());
  call("cuGraphLaunch", executable_, stream.get());
}

void during_capture(const TestStream& stream, const std::function<void()>& work) {
  const cuda::CurrentContext current(stream.device().driver(), stream.device().context());
  begin_capture(stream);
  work();
  call("cuGraphDestroy", end_capture(stream));
}

ForeignStream::ForeignStream(const bilogp::Device& device) {
  const cuda::Driver& driver = cuda::driver();
  cuda::DeviceOrdinal ordinal = 0;
  cuda::check(driver, driver.device_get(&ordinal, device.index), "a device");
  call("cuCtxCreate_v2", &context_, 0U, ordinal);
  cuda::check(driver, driver.stream_create(&stream_, cuda::stream_non_blocking), "a stream");
  cuda::Context popped = nullptr;
  driver.context_pop_current(&popped);
}

ForeignStream::~ForeignStream() {
  try {
    call("cuCtxDestroy_v2", context_);
  } catch (const std::exception&) { // dropped: the test has said what went wrong
  }
}

} // namespace cuda_test
