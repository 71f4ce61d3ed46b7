// What a call asks of the driver: memory, captures, scratch, errors.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <thread>

#include "runtime/backends/cuda/plans.hpp"
#include "runtime/backends/cuda/scratch.hpp"
#include "tests/cuda/fake/host_calls.hpp"

using namespace fake;
using bilogp::DType;
using bilogp::Runtime;
using bilogp::Validate;

namespace {

enum class Mode : int { global = 0, thread_local_ = 1 };

void* begin_capture(void* stream, Mode mode) {
  call_driver<int(void*, int)>("cuStreamBeginCapture_v2", stream, static_cast<int>(mode));
  return stream;
}

void* end_capture(void* stream) {
  void* graph = nullptr;
  call_driver<int(void*, void**)>("cuStreamEndCapture", stream, &graph);
  return graph;
}

void destroy_graph(void* graph) {
  call_driver<int(void*)>("cuGraphDestroy", graph);
}

void wait_for(void* stream) {
  call_driver<int(void*)>("cuStreamSynchronize", stream);
}

// The device's primary context, current for this thread.
class ThreadsContext {
public:
  explicit ThreadsContext(int device) {
    call_driver<int(void*)>("cuCtxPushCurrent_v2", call_driver<void*(int, bool)>("fake_context", device, true));
  }
  ~ThreadsContext() {
    void* context = nullptr;
    call_driver<int(void**)>("cuCtxPopCurrent_v2", &context);
  }
  ThreadsContext(const ThreadsContext&) = delete;
  ThreadsContext& operator=(const ThreadsContext&) = delete;
};

bilogp::LogpArgs split(const Rows& rows, void* stream) {
  bilogp::LogpArgs args = rows.forward(stream);
  args.options.plan = bilogp::cuda::plain_split_rows;
  return args;
}

} // namespace

TEST_SUITE_BEGIN("calls");

TEST_CASE("a warm call allocates nothing and waits for nothing") {
  for (const std::int64_t row_count : {2, 300}) {
    const Rows rows(h200, DType::bfloat16, row_count, 32768);
    void* const stream = own_stream(h200);
    const std::int64_t before_cold_calls = host_allocations();
    rows.call_all(stream);
    CHECK(host_allocations() > before_cold_calls); // the library's are counted
    start_over();
    for (const char* const function : {"cuStreamSynchronize", "cuMemAlloc_v2", "cuMemFree_v2", "cuModuleLoadDataEx",
                                       "cuMemcpyDtoHAsync_v2", "cuEventQuery", "cuFuncSetAttribute"})
      driver_state().failures.push_back({function, 1, 0, 1000});
    for (int turn = 0; turn < 10; ++turn) CHECK_NOTHROW(rows.call_all(stream));
    CHECK(driver_state().allocations.load() == 0);
    CHECK(nvrtc_state().compiles == 0);
    const ThreadsContext usual(h200); // a framework's thread has it
    start_over();
    Runtime::get("cuda").logp(rows.forward(stream));
    CHECK(driver_state().calls.load() <= 4); // the context, where the stream's scratch is, the launch
    driver_state().records = false;
    rows.call_all(stream);
    const std::int64_t before = host_allocations();
    for (int turn = 0; turn < 10; ++turn) rows.call_all(stream);
    CHECK(host_allocations() == before);
    driver_state().records = true;
  }
}

TEST_CASE("memory of a device grows with streams and captured graphs, never with calls, rows or columns") {
  const Rows small(h200, DType::float32, 2, 5000);
  const Rows large(h200, DType::float32, 64, 131072);
  void* const stream = own_stream(h200);
  for (const Rows* const rows : {&small, &large}) rows->call_all(stream);
  start_over();
  for (int turn = 0; turn < 20; ++turn)
    for (const Rows* const rows : {&small, &large}) {
      rows->call_all(stream);
      Runtime::get("cuda").logp(split(*rows, stream));
    }
  CHECK(driver_state().allocations.load() <= 1); // of this stream, if no call before took scratch
}

TEST_CASE("no rows, one column, one value for all rows, and more of everything than 32 bits count") {
  const Rows rows(h200, DType::bfloat16, 4, 5000);
  Runtime& runtime = Runtime::get("cuda");
  start_over();
  Rows none = rows;
  none.rows = 0;
  CHECK_NOTHROW(none.call_all());
  CHECK(launches().empty());
  bilogp::LogpGradientArgs shared = rows.with_gradient();
  shared.target_ids.strides[0] = shared.grad_logp.strides[0] = shared.logits.strides[0] = 0;
  CHECK_NOTHROW(runtime.logp_with_gradient(shared));
  shared.grad_logits.strides[0] = 0;
  CHECK(contains(refusal([&] { runtime.logp_with_gradient(shared); }), "grad_logits is an output with stride 0"));
  // The fake runs no kernel: these tensors need no memory, only numbers.
  for (const int device : {h200, turing})
    for (const auto& [row_count, columns] :
         {std::pair{std::int64_t{1} << 33, std::int64_t{1}}, std::pair{std::int64_t{1} << 20, std::int64_t{1} << 17},
          std::pair{std::int64_t{3}, std::int64_t{1} << 31}, std::pair{std::int64_t{1} << 31, std::int64_t{1} << 16},
          std::pair{std::int64_t{70000}, std::int64_t{151936}}}) {
      Rows far(device, DType::bfloat16, 4, 16);
      far.rows = row_count;
      far.vocab = columns;
      // No two of them overlap.
      std::uintptr_t at = 4096;
      for (void** const data : {&far.logits, &far.grad, &far.ids, &far.logp, &far.state, &far.upstream, &far.nodes}) {
        *data = reinterpret_cast<void*>(at);
        at += static_cast<std::uintptr_t>(std::max(row_count * columns * 2, row_count * 8) + 4096);
      }
      CAPTURE(row_count);
      CAPTURE(columns);
      start_over();
      CHECK_NOTHROW(far.call_all());
      CHECK(launches().size() >= 5);
      for (const Launch& launch : launches()) CHECK(launch.grid <= 0x7fffffffU);
    }
}

TEST_CASE("a capture: warm calls join it, cold ones are refused, nothing else spoils it") {
  const Rows rows(h200, DType::bfloat16, 2, 30000);
  rows.call_all();
  Runtime::get("cuda").logp(split(rows, nullptr));
  for (const Mode mode : {Mode::global, Mode::thread_local_}) {
    start_over();
    void* const stream = begin_capture(own_stream(h200), mode);
    CHECK_NOTHROW(rows.call_all(stream));
    CHECK_NOTHROW(Runtime::get("cuda").logp(split(rows, stream))); // takes scratch of its own
    const Rows cold(h200, DType::bfloat16, 2, 30001 + static_cast<std::int64_t>(mode));
    const std::string said = refusal([&] { Runtime::get("cuda").logp(cold.forward(stream)); });
    CHECK(said.starts_with("device: "));
    CHECK(contains(said, "warmup"));
    bilogp::LogpArgs validated = rows.forward(stream);
    validated.options.validate = Validate::on;
    CHECK(contains(refusal([&] { Runtime::get("cuda").logp(validated); }), "validate"));
    // Meanwhile another thread compiles, validates, reads errors and takes scratch for the first time.
    std::thread other([&] {
      cold.call_all(own_stream(h200));
      bilogp::LogpArgs args = split(cold, own_stream(h200));
      args.options.validate = Validate::on;
      Runtime::get("cuda").logp(args);
      static_cast<void>(Runtime::get("cuda").take_errors(cold.device));
    });
    other.join();
    destroy_graph(end_capture(stream));
    CHECK(driver_state().spoiled_captures.load() == 0);
  }
}

TEST_CASE("scratch: one per stream and per captured graph; a graph's serves again when the graph is gone") {
  namespace cuda = bilogp::cuda;
  static cuda::ScratchPool& pool = *new cuda::ScratchPool(cuda::driver()); // as a device has it: for good
  const ThreadsContext context(h200);
  const auto address_of = [&](void* stream) {
    return cuda::ScratchLease(pool, static_cast<cuda::Stream>(stream)).scratch().nodes;
  };
  void* const first = own_stream(h200);
  void* const second = own_stream(h200);
  std::set<cuda::Address> all = {address_of(first), address_of(second)};
  CHECK(all.size() == 2);
  CHECK(address_of(first) == address_of(first));
  void* const streams[] = {begin_capture(first, Mode::thread_local_), begin_capture(second, Mode::thread_local_)};
  const cuda::Address captured = address_of(streams[0]);
  all.insert(captured);
  all.insert(address_of(streams[1]));
  CHECK(all.size() == 4);
  CHECK(address_of(streams[0]) == captured);
  destroy_graph(end_capture(first));
  void* const living = end_capture(second);
  begin_capture(first, Mode::thread_local_);
  CHECK(address_of(first) == captured);
  // What a graph cannot own it does not get, and it is not lost either.
  begin_capture(second, Mode::thread_local_);
  start_over();
  for (const char* const function : {"cuUserObjectCreate", "cuGraphRetainUserObject"}) {
    driver_state().failures.push_back({function, 999});
    CHECK(refusal([&] { address_of(second); }).starts_with("device: giving a graph its scratch"));
  }
  CHECK(all.insert(address_of(second)).second);
  CHECK(driver_state().allocations.load() == 1);
  for (void* const stream : {first, second}) destroy_graph(end_capture(stream));
  destroy_graph(living);
}

// Streams come and go, and nobody tells when one is gone.
TEST_CASE("scratch of many streams is handed on when its stream is at rest, and at no other time") {
  namespace cuda = bilogp::cuda;
  static cuda::ScratchPool& pool = *new cuda::ScratchPool(cuda::driver()); // as a device has it: for good
  const ThreadsContext context(h200);
  std::vector<cuda::Stream> streams;
  std::set<cuda::Address> in_use;
  for (int i = 0; i < 70; ++i) {
    streams.push_back(static_cast<cuda::Stream>(own_stream(h200)));
    call_driver<void(void*)>("fake_keep_busy", static_cast<void*>(streams.back()));
    in_use.insert(cuda::ScratchLease(pool, streams.back()).scratch().nodes);
  }
  CHECK(in_use.size() == streams.size());
  for (auto* const stream : streams) wait_for(stream);
  for (auto* const stream : streams) cuda::ScratchLease(pool, stream); // which leaves an event behind now
  start_over();
  const auto fresh_stream = [] { return static_cast<cuda::Stream>(own_stream(h200)); };
  {
    // All are at rest but the first, which a call has taken a moment ago and has not launched on yet, and the second,
    // where a kernel runs.
    const cuda::ScratchLease first(pool, streams[0]);
    {
      const cuda::ScratchLease of_one_of_its_launches(pool, streams[0]);
    }
    call_driver<void(void*)>("fake_keep_busy", static_cast<void*>(streams[1]));
    const cuda::Address second = cuda::ScratchLease(pool, streams[1]).scratch().nodes;
    std::set<cuda::Address> handed_on;
    for (std::size_t i = 2; i < streams.size(); ++i) {
      const auto stream = fresh_stream();
      handed_on.insert(cuda::ScratchLease(pool, stream).scratch().nodes);
      call_driver<void(void*)>("fake_keep_busy", static_cast<void*>(stream));
    }
    CHECK(handed_on.size() == streams.size() - 2);
    CHECK(handed_on.count(first.scratch().nodes) + handed_on.count(second) == 0);
    for (const cuda::Address address : handed_on) CHECK(in_use.count(address) == 1);
    CHECK(driver_state().allocations.load() == 0);
    const auto one_more = fresh_stream();
    CHECK(in_use.count(cuda::ScratchLease(pool, one_more).scratch().nodes) == 0); // none is at rest any more
    call_driver<void(void*)>("fake_keep_busy", static_cast<void*>(one_more));
    wait_for(streams[1]);
    CHECK(cuda::ScratchLease(pool, fresh_stream()).scratch().nodes == second);
  }
  start_over();
  begin_capture(streams.back(), Mode::global);
  const cuda::ScratchLease beside_a_capture(pool, fresh_stream());
  destroy_graph(end_capture(streams.back()));
  CHECK(driver_state().spoiled_captures.load() == 0);
}

TEST_CASE("no memory for scratch is said, and the call works once there is some") {
  const Rows rows(consumer, DType::bfloat16, 2, 30000);
  Runtime::get("cuda").logp(split(rows, nullptr));
  void* const stream = own_stream(consumer);
  for (const char* const function : {"cuMemAlloc_v2", "cuStreamCreate", "cuMemsetD32Async", "cuStreamSynchronize"}) {
    start_over();
    const int allocated = driver_state().allocated_now;
    const int streams = driver_state().streams_now;
    driver_state().failures.push_back({function, 2});
    const std::string said = refusal([&] { Runtime::get("cuda").logp(split(rows, stream)); });
    CAPTURE(said);
    CHECK(said.starts_with("out_of_memory: "));
    CHECK(contains(said, "scratch"));
    CHECK(driver_state().allocated_now == allocated);
    CHECK(driver_state().streams_now == streams);
  }
  start_over();
  CHECK_NOTHROW(Runtime::get("cuda").logp(split(rows, stream)));
}

TEST_CASE("validate: memory and streams of another place") {
  const Rows here(h200, DType::float32, 4, 1000);
  const Rows there(turing, DType::float32, 4, 1000);
  std::vector<float> host(4);
  void* const stream = own_stream(h200);
  const auto said_of = [&](const bilogp::LogpArgs& args) { return refusal([&] { Runtime::get("cuda").logp(args); }); };
  bilogp::LogpArgs args = here.forward(stream);
  args.options.validate = Validate::on;
  CHECK(said_of(args) == "nothing thrown");
  args.logp.data = host.data();
  CHECK(contains(said_of(args), "invalid_argument: logp points at plain host memory"));
  args.logp.data = there.logp;
  CHECK(contains(said_of(args), "logp lies in the memory of cuda:2, but its device is cuda:0"));
  args = here.forward(stream);
  args.options.validate = Validate::on;
  args.options.temperature_per_row = here.view(there.temperatures, DType::float32, {4});
  CHECK(contains(said_of(args), "temperature_per_row lies in the memory of cuda:2"));
  args = here.forward(foreign_stream(h200));
  args.options.validate = Validate::on;
  CHECK(contains(said_of(args), "stream does not belong to the primary context of cuda:0"));
  args.stream = own_stream(turing);
  CHECK(contains(said_of(args), "stream does not belong"));
  args = here.forward(stream);
  args.target_ids.device.index = turing;
  CHECK(contains(said_of(args), "target_ids is on cuda:2, but the logits are on cuda:0"));
  const std::int64_t bad = 1000;
  std::memcpy(static_cast<char*>(here.ids) + 16, &bad, 8);
  args = here.forward(stream);
  args.options.validate = Validate::on;
  start_over();
  CHECK(contains(said_of(args), "out_of_range: the target id of row 2 is 1000"));
  CHECK(launches().empty());
}

TEST_CASE("tensors off their elements' alignment, options' own among them") {
  const Rows rows(h200, DType::float32, 4, 1000);
  const auto off = [](void* data) { return static_cast<void*>(static_cast<char*>(data) + 2); };
  start_over();
  const auto said_of = [&](const bilogp::LogpArgs& args) { return refusal([&] { Runtime::get("cuda").logp(args); }); };
  for (const char* const name : {"logits", "target_ids", "logp", "temperature_per_row", "error_buffer"}) {
    bilogp::LogpArgs args = rows.forward();
    args.options.temperature_per_row = rows.view(rows.temperatures, DType::float32, {4});
    args.options.error_buffer = static_cast<std::int64_t*>(rows.state);
    const std::string_view which = name;
    if (which == "logits") args.logits.data = off(rows.grad);
    if (which == "target_ids") args.target_ids.data = off(rows.ids);
    if (which == "logp") args.logp.data = off(rows.upstream);
    if (which == "temperature_per_row") args.options.temperature_per_row.data = off(rows.temperatures);
    if (which == "error_buffer") args.options.error_buffer = static_cast<std::int64_t*>(off(rows.state));
    CHECK(contains(said_of(args), std::string("invalid_argument: ") + name + " begins at the address"));
  }
  CHECK(launches().empty());
}

TEST_CASE("a device that is lost says so, and others go on") {
  const Rows lost(h200, DType::float32, 4, 1000);
  const Rows other(turing, DType::float32, 4, 1000);
  lost.call_all();
  other.call_all();
  for (const int code : {700, 710, 714, 715, 716, 719, 214, 220, 709}) {
    start_over();
    driver_state().failures.push_back({"cuLaunchKernelEx", code});
    const std::string said = refusal([&] { Runtime::get("cuda").logp(lost.forward()); });
    CAPTURE(said);
    CHECK(said.starts_with("device: launching a kernel failed with "));
    CHECK(contains(said, "started again"));
    CHECK_NOTHROW(other.call_all());
  }
  for (const int code : {2, 1, 400, 46, 701, 713, 720, 801}) { // which leave the context as it was
    start_over();
    driver_state().failures.push_back({"cuLaunchKernelEx", code});
    const std::string said = refusal([&] { Runtime::get("cuda").logp(lost.forward()); });
    CAPTURE(said);
    CHECK_FALSE(contains(said, "started again"));
    CHECK(said.starts_with(code == 2 ? "out_of_memory: " : "device: "));
  }
  bilogp::LogpArgs validated = lost.forward(own_stream(h200));
  validated.options.validate = Validate::on;
  for (const char* const function : {"cuPointerGetAttribute", "cuStreamGetCtx", "cuMemcpyDtoHAsync_v2"}) {
    start_over();
    driver_state().failures.push_back({function, 700});
    CHECK(contains(refusal([&] { Runtime::get("cuda").logp(validated); }), "started again"));
  }
}

TEST_CASE("what is taken from the error words is taken once, whoever asks") {
  const Rows rows(h200, DType::float32, 4, 1000);
  Runtime& runtime = Runtime::get("cuda");
  static_cast<void>(runtime.take_errors(rows.device));
  // The words are the first that the driver is asked to copy from: found by a call that fails there.
  constexpr int rounds = 200;
  std::atomic<std::int64_t> taken = 0;
  for (int round = 0; round < rounds; ++round) {
    call_driver<void(std::int64_t)>("fake_set_last_copied", 3);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        const bilogp::TargetErrors errors = runtime.take_errors(rows.device);
        taken += errors.count;
      });
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(taken == 3 * rounds);
}

TEST_SUITE_END();
