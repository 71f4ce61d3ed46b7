// Devices, contexts and plans, on devices that are not there.
#include <doctest/doctest.h>

#include <thread>

#include "tests/cuda/fake/host_calls.hpp"

using namespace fake;
using bilogp::DType;
using bilogp::Runtime;

namespace {

void* current_context() {
  void* context = nullptr;
  call_driver<int(void**)>("cuCtxGetCurrent", &context);
  return context;
}

void push(void* context) {
  call_driver<int(void*)>("cuCtxPushCurrent_v2", context);
}

void pop() {
  void* context = nullptr;
  call_driver<int(void**)>("cuCtxPopCurrent_v2", &context);
}

bool has(const std::vector<std::string>& texts, std::string_view part) {
  for (const std::string& text : texts)
    if (contains(text, part)) return true;
  return false;
}

} // namespace

TEST_SUITE_BEGIN("devices");

TEST_CASE("a device that does not open leaves nothing behind, and opens once it can") {
  Runtime& runtime = Runtime::get("cuda");
  const bilogp::Device device{bilogp::DeviceType::cuda, second_h200};
  for (const char* const function :
       {"cuDevicePrimaryCtxRetain", "cuStreamCreate", "cuMemAlloc_v2", "cuMemsetD32Async", "cuStreamSynchronize"}) {
    start_over();
    const int streams = driver_state().streams_now;
    const int allocated = driver_state().allocated_now;
    driver_state().failures.push_back({function, 2});
    CAPTURE(function);
    CHECK(refusal([&] { static_cast<void>(runtime.take_errors(device)); }).starts_with("out_of_memory: "));
    CHECK(driver_state().streams_now == streams);
    CHECK(driver_state().allocated_now == allocated);
    const auto& retained = driver_state().retained;
    CHECK((retained.size() <= second_h200 || retained[second_h200] == 0));
    CHECK(current_context() == nullptr);
  }
  start_over();
  CHECK(runtime.take_errors(device).count == 0);
  CHECK(driver_state().retained[second_h200] == 1);
}

TEST_CASE("ordinals are the driver's; each device is asked for its own limits and code") {
  for (int device = 0; device < static_cast<int>(device_models().size()); ++device) {
    const DeviceModel model = device_models()[static_cast<std::size_t>(device)];
    CAPTURE(model.name);
    for (const std::int64_t rows : {1, 3, 40, 2000})
      for (const std::int64_t vocab : {700, 32768, 40001, 151936}) {
        if (rows * vocab > 10000000) continue;
        start_over();
        const Rows problem(device, DType::bfloat16, rows, vocab);
        problem.call_all();
        const std::string target = "sm_" + std::to_string(model.capability) + (model.capability == 90 ? "a" : "");
        const std::string older = "compute_" + std::to_string(model.capability == 120 ? 100 : 0);
        REQUIRE(launches().size() >= 5);
        for (const Launch& launch : launches()) {
          CHECK(launch.device == device);
          CHECK((contains(launch.image, target) || contains(launch.image, older)));
          CHECK(static_cast<int>(launch.cluster) <= model.largest_cluster);
          if (model.shared_per_block < 200000) CHECK(launch.shared_bytes == 0);
        }
        CHECK(driver_state().retained[static_cast<std::size_t>(device)] == 1);
      }
  }
}

TEST_CASE("clusters that a slice of a card has no room for: smaller ones, asked for once, and rings as ever") {
  const Rows few(slice, DType::bfloat16, 1, 128256);
  const Rows many(slice, DType::bfloat16, 700, 4096);
  const Rows both(slice, DType::bfloat16, 40, 32768);
  few.call_all();
  both.call_all();
  start_over();
  few.call_all();
  both.call_all();
  many.call_all();
  CHECK(launches(true).size() == launches().size());
  CHECK(launches().front().cluster > 1);
  CHECK(launches().front().cluster <= 4);
  bool has_rings = false;
  for (const Launch& launch : launches())
    has_rings = has_rings || (launch.entry == "bilogp_logp_forward" && launch.shared_bytes > 100000);
  CHECK(has_rings);
}

TEST_CASE("a launch that fails for another reason is an error, and clusters stay") {
  const Rows few(h200, DType::bfloat16, 1, 128256);
  Runtime::get("cuda").logp(few.forward());
  start_over();
  for (const int code : {1, 701}) { // that may mean clusters
    driver_state().failures.push_back({"cuLaunchKernelEx", code});
    CHECK(refusal([&] { Runtime::get("cuda").logp(few.forward()); }).starts_with("device: launching a kernel"));
  }
  Runtime::get("cuda").logp(few.forward());
  CHECK(launches().back().cluster > 8);
}

TEST_CASE("the thread's context is left as it was, by calls that succeed and calls that fail, on eight threads") {
  Rows(h200, DType::float32, 2, 500).call_all();
  Rows(turing, DType::float32, 2, 500).call_all();
  start_over();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      const int device = i % 2 == 0 ? h200 : turing;
      void* const mine =
          i % 4 < 2 ? nullptr : call_driver<void*(int, bool)>("fake_context", i % 2 == 0 ? turing : h200, i < 4);
      if (mine != nullptr) push(mine);
      const Rows rows(device, DType::float32, 2, 500);
      for (int turn = 0; turn < 50; ++turn) {
        rows.call_all();
        if (current_context() != mine) ++wrong;
        static_cast<void>(Runtime::get("cuda").take_errors(rows.device));
        if (current_context() != mine) ++wrong;
        bilogp::LogpArgs args = rows.forward(foreign_stream(device));
        args.options.validate = bilogp::Validate::on;
        if (refusal([&] { Runtime::get("cuda").logp(args); }) == "nothing thrown") ++wrong;
        args.options.validate = bilogp::Validate::off;
        if (refusal([&] { Runtime::get("cuda").logp(args); }) == "nothing thrown") ++wrong; // the driver's refusal
        if (current_context() != mine) ++wrong;
      }
      if (mine != nullptr) pop();
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("devices that are not there, and one that is too old") {
  Rows rows(h200, DType::float32, 2, 500);
  for (const int index : {-1, 7, 63, 64, 1000000}) {
    bilogp::LogpArgs args = rows.forward();
    for (bilogp::TensorView* view : {&args.logits, &args.target_ids, &args.logp}) view->device.index = index;
    const std::string said = refusal([&] { Runtime::get("cuda").logp(args); });
    CAPTURE(said);
    CHECK(said.starts_with("invalid_argument: a tensor is on cuda:" + std::to_string(index)));
    CHECK(contains(said, "sees 7 CUDA device(s)"));
  }
  CHECK(contains(refusal([&] { Runtime::get("cuda:sm_75").logp(rows.forward()); }), "cuda:0 is an sm_90a"));
  Runtime::get("cuda:sm_90a").logp(rows.forward());
}

TEST_CASE("clusters that stay to the end are as many as run at once on this card, which is asked once") {
  const Rows rows(h200, DType::bfloat16, 64, 128256);
  const Rows fewer(h200, DType::bfloat16, 20, 128256);
  const auto grid_of = [](const bilogp::LogpGradientArgs& args) {
    start_over();
    Runtime::get("cuda").logp_with_gradient(args);
    return launches().empty() ? 0 : launches().back().grid;
  };
  CHECK(grid_of(rows.with_gradient()) == 4 * 29); // of 132 multiprocessors in groups of 18 and one of 6
  CHECK(grid_of(fewer.with_gradient()) == 4 * 20);
  bilogp::LogpGradientArgs native = rows.with_gradient();
  native.options.numerics = bilogp::Numerics::native;
  CHECK(grid_of(native) == 8 * 14);
  driver_state().failures.push_back({"cuOccupancyMaxActiveClusters", 1});
  Runtime::get("cuda").logp_with_gradient(rows.with_gradient());
  CHECK(driver_state().failures.back().times == 1);
  // A driver that cannot say: as planned. No other test asks this device for clusters of eight.
  const Rows others(second_h200, DType::bfloat16, 64, 128256);
  start_over();
  driver_state().failures.push_back({"cuOccupancyMaxActiveClusters", 1});
  native = others.with_gradient();
  native.options.numerics = bilogp::Numerics::native;
  Runtime::get("cuda").logp_with_gradient(native);
  CHECK(driver_state().failures.back().times == 0);
  CHECK(launches().back().grid == 8 * 15);
}

TEST_CASE("few rows and their gradient take the whole device, whatever the temperatures") {
  Rows rows(turing, DType::bfloat16, 2, 128256);
  for (const bool per_row : {false, true}) {
    bilogp::LogpGradientArgs args = rows.with_gradient();
    if (per_row) args.options.temperature_per_row = rows.view(rows.temperatures, DType::float32, {2});
    start_over();
    Runtime::get("cuda").logp_with_gradient(args);
    REQUIRE(launches().size() == 2);
    CHECK(launches()[0].entry == "bilogp_logp_forward");
    CHECK(launches()[0].grid >= 40);
    CHECK(launches()[1].entry == "bilogp_logp_backward");
    // Which clusters that hold a row take in one pass, where it has one temperature.
    Rows hopper(h200, DType::bfloat16, 16, 128256);
    args = hopper.with_gradient();
    if (per_row) args.options.temperature_per_row = hopper.view(hopper.temperatures, DType::float32, {16});
    start_over();
    Runtime::get("cuda").logp_with_gradient(args);
    CHECK(launches().size() == (per_row ? 2 : 1));
  }
}

TEST_CASE("kernels are compiled as written: no fusing, no flushing, no file but the templates") {
  start_over();
  const bilogp::Specialization spec{bilogp::Operator::logp_forward, DType::float32, DType::int32, 23456};
  static_cast<void>(Runtime::get("cuda:sm_80").warmup({&spec, 1}));
  CHECK(nvrtc_state().compiles > 0);
  for (const char* const option : {"--fmad=false", "--ftz=false", "--prec-div=true", "--gpu-architecture=sm_80"})
    CHECK(has(nvrtc_state().options, option));
  for (const std::string& option : nvrtc_state().options) CHECK_FALSE(contains(option, "include"));
  CHECK(nvrtc_state().files.front() == "logp_forward.kernel");
  CHECK(has(nvrtc_state().files, "canon/leaf.h"));
}

TEST_SUITE_END();
