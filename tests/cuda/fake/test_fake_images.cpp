// Compiled kernels between NVRTC, the store and the driver, and what compilers and drivers refuse.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "runtime/backends/cuda/build_id.hpp"
#include "runtime/backends/cuda/kernels.hpp"
#include "runtime/backends/cuda/nvrtc.hpp"
#include "tests/cuda/fake/host_calls.hpp"

using namespace fake;
using bilogp::DType;
using bilogp::KernelOrigin;
using bilogp::Operator;
using bilogp::Runtime;
using bilogp::Specialization;

namespace {

std::int64_t unused_vocab() {
  static std::int64_t vocab = 60000;
  return vocab += 2;
}

} // namespace

TEST_SUITE_BEGIN("images");

TEST_CASE("a key names the compiler's own build, the exact target, the options and the definitions") {
  namespace cuda = bilogp::cuda;
  const Specialization spec{Operator::logp_forward, DType::bfloat16, DType::int64, 128256};
  const auto text_of = [](const Specialization& one, const char* target) {
    return cuda::store_key(cuda::compile_request(one, cuda::resolve_target(target))).text();
  };
  const std::string text = text_of(spec, "sm_90a");
  const std::string build = cuda::identity_of_library(BILOGP_FAKE_NVRTC);
  REQUIRE_FALSE(build.empty());
  CHECK(cuda::nvrtc_identity().starts_with("nvrtc "));
  for (const std::string_view part :
       {std::string_view(build), std::string_view("sm_90a"), std::string_view("--fmad=false"),
        std::string_view("BILOGP_VOCAB=128256"), std::string_view("BILOGP_LOGITS=Bfloat16")})
    CHECK(contains(text, part));
  CHECK(text_of(spec, "sm_90a") == text);
  CHECK(text_of(spec, "sm_100") != text);
  std::vector<Specialization> others(6, spec);
  others[0].numerics = bilogp::Numerics::native;
  others[1].variant = 1;
  others[2].op = Operator::logp_with_gradient;
  others[3].id_dtype = DType::int32;
  others[4].logits_dtype = DType::float16;
  others[5].vocab_size = 128000;
  for (const Specialization& other : others) CHECK(text_of(other, "sm_90a") != text);
}

TEST_CASE("a stored kernel that the driver refuses is dropped and compiled again") {
  const Rows first(h200, DType::float32, 2, unused_vocab());
  const Rows second(second_h200, DType::float32, 2, first.vocab); // whose kernels come from the store
  start_over();
  Runtime::get("cuda").logp(first.forward());
  CHECK(nvrtc_state().compiles == 1);
  driver_state().failures.push_back({"cuModuleLoadDataEx", 200});
  Runtime::get("cuda").logp(second.forward());
  CHECK(nvrtc_state().compiles == 2);
  CHECK(launches().back().device == second_h200);
}

TEST_CASE(
    "a kernel that the driver refuses as soon as it is made: the compiler is too new, and the next call tries again") {
  const Rows rows(h200, DType::float32, 2, unused_vocab());
  for (const int code : {200, 209, 218, 222, 223, 300}) {
    start_over();
    driver_state().failures.push_back({"cuModuleLoadDataEx", code});
    const std::string said = refusal([&] { Runtime::get("cuda").logp(rows.forward()); });
    CAPTURE(said);
    CHECK(said.starts_with("compile_failed: the driver (for CUDA 13.0) refuses a kernel for sm_90a"));
    CHECK(contains(said, "no newer than the driver"));
  }
  start_over();
  driver_state().failures.push_back({"cuModuleLoadDataEx", 2}); // no matter of the image
  CHECK(refusal([&] { Runtime::get("cuda").logp(rows.forward()); }).starts_with("out_of_memory: loading a kernel"));
  CHECK_NOTHROW(Runtime::get("cuda").logp(rows.forward()));
}

TEST_CASE("a kernel that does not load as a whole is not left in the device") {
  const Rows rows(h200, DType::float32, 2, unused_vocab());
  for (const char* const function : {"cuModuleGetFunction", "cuFuncGetAttribute", "cuFuncSetAttribute"}) {
    start_over();
    const int modules = driver_state().modules_now;
    driver_state().failures.push_back({function, 999});
    CHECK(refusal([&] { Runtime::get("cuda").logp(rows.forward()); }).starts_with("device: "));
    CHECK(driver_state().modules_now == modules);
  }
}

TEST_CASE("threads whose first calls share a kernel: one compiles, all have it; when that fails, all are told") {
  const std::int64_t vocab = unused_vocab();
  for (const int result : {6, 0}) {
    start_over();
    nvrtc_state().result = result;
    std::vector<std::thread> threads;
    std::atomic<int> refused = 0;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        const Rows rows(blackwell, DType::float32, 2, vocab);
        const std::string said = refusal([&] { Runtime::get("cuda").logp(rows.forward()); });
        if (said.starts_with("compile_failed: ")) ++refused;
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(refused.load() == (result == 0 ? 0 : 8));
    if (result == 0) CHECK(nvrtc_state().compiles.load() == 1);
  }
  CHECK(launches().size() == 8);
}

TEST_CASE("PTX of the newest older architecture where NVRTC does not know the device's") {
  const Rows rows(new_consumer, DType::float32, 2, unused_vocab());
  start_over();
  Runtime::get("cuda").logp(rows.forward());
  CHECK(launches().back().image.starts_with(".version"));
  CHECK(contains(launches().back().image, " compute_100"));
}

TEST_CASE("an NVRTC that fails is quoted, with the template's name and line") {
  const Rows rows(turing, DType::float32, 2, unused_vocab());
  start_over();
  nvrtc_state().result = 6;
  nvrtc_state().log = "device/gpu/tile.h(41): error: identifier \"x\" is undefined\n";
  for (int turn = 0; turn < 2; ++turn) { // nothing of it is kept
    const std::string said = refusal([&] { Runtime::get("cuda").logp(rows.forward()); });
    CAPTURE(said);
    CHECK(said.starts_with("compile_failed: logp_forward.kernel does not compile for sm_75 with NVRTC "));
    CHECK(contains(said, "device/gpu/tile.h(41): error: identifier \"x\" is undefined"));
    CHECK_FALSE(said.ends_with("\n"));
  }
  nvrtc_state().result = 1; // out of memory
  CHECK(refusal([&] { Runtime::get("cuda").logp(rows.forward()); }).starts_with("out_of_memory: "));
  nvrtc_state().result = 0;
  CHECK_NOTHROW(Runtime::get("cuda").logp(rows.forward()));
}

TEST_CASE("warmup makes the kernels of every plan, so that no call compiles any more") {
  const std::int64_t vocab = unused_vocab();
  const Specialization spec{Operator::logp_with_gradient, DType::bfloat16, DType::int64, vocab};
  const bilogp::WarmupReport report = Runtime::get("cuda:sm_90a").warmup({&spec, 1});
  CHECK(report.kernels.size() > 10);
  start_over();
  for (const std::int64_t rows : {1, 9, 40, 100, 200, 700}) {
    const Rows problem(h200, DType::bfloat16, rows, vocab);
    Runtime::get("cuda").logp_with_gradient(problem.with_gradient());
    Runtime::get("cuda").logp(problem.forward());
  }
  CHECK(nvrtc_state().compiles == 0);
  for (const int variant : {99, 255}) {
    Specialization unknown = spec;
    unknown.variant = static_cast<std::uint8_t>(variant);
    CHECK(refusal([&] {
            Runtime::get("cuda:sm_90a").warmup({&unknown, 1});
          }).starts_with("invalid_argument: the kernel \"logp_with_gradient bfloat16 int64 vocab="));
    CHECK(refusal([&] { Runtime::get("cuda:sm_80").warmup({&unknown, 1}); }).starts_with("invalid_argument: "));
  }
  // Once more: they are there.
  for (const bilogp::KernelInfo& kernel : Runtime::get("cuda:sm_90a").warmup({&spec, 1}).kernels)
    CHECK(kernel.origin == KernelOrigin::loaded);
}

TEST_SUITE_END();

// In a process of its own, where NVRTC is 12.0: it has no instruction that blocks of a cluster send by.
TEST_SUITE_BEGIN("old compiler");

TEST_CASE("NVRTC 12.0: plans without clusters instead, said once; whatever else there is goes on" * doctest::skip()) {
  std::vector<std::string> warnings;
  bilogp::set_log_callback([&](std::string_view sentence) { warnings.emplace_back(sentence); });
  const Specialization spec{Operator::logp_forward, DType::bfloat16, DType::int64, 128256};
  bool is_warm = false;
  SUBCASE("cold calls") {}
  SUBCASE("warmup first") {
    is_warm = true;
    const bilogp::WarmupReport report = Runtime::get("cuda:sm_90a").warmup({&spec, 1});
    CHECK(report.kernels.size() > 5);
    for (const bilogp::KernelInfo& kernel : report.kernels) CHECK(kernel.specialization.op == Operator::logp_forward);
  }
  start_over();
  for (const std::int64_t rows : {1, 8, 64, 150, 256, 700})
    for (const std::int64_t vocab : {4096, 32768, 128256}) {
      if (rows * vocab > 10000000) continue;
      const Rows problem(h200, DType::bfloat16, rows, vocab);
      CHECK_NOTHROW(problem.call_all());
      const std::string forced = refusal([&] {
        bilogp::LogpArgs args = problem.forward();
        args.options.plan = 16 + 10; // a cluster of sixteen
        Runtime::get("cuda").logp(args);
      });
      CHECK(forced == "nothing thrown");
    }
  bool has_rings = false;
  for (const Launch& launch : launches(true)) {
    CHECK(launch.cluster == 1);
    has_rings = has_rings || launch.shared_bytes > 100000;
  }
  CHECK(has_rings);
  if (!is_warm) {
    REQUIRE(warnings.size() == 1);
    CHECK(contains(warnings.front(), "12.0"));
    CHECK(contains(warnings.front(), "pip install"));
  } else {
    CHECK(warnings.size() <= 1);
  }
  bilogp::set_log_callback({});
}

TEST_SUITE_END();

// In a process of its own, which has neither at first.
TEST_SUITE_BEGIN("missing");

TEST_CASE("a driver or an NVRTC that will not do is named, with what to do, and asked again" * doctest::skip()) {
  DriverState& driver = driver_state();
  const auto said_of_get = [] { return refusal([] { Runtime::get("cuda"); }); };
  driver.version = 11080;
  CHECK(contains(said_of_get(), "is a driver for CUDA 11.8; expected one for CUDA 12.0 or newer: update"));
  driver.version = 12000;
  driver.init_result = 100;
  CHECK(contains(said_of_get(), "finds no device; check nvidia-smi and CUDA_VISIBLE_DEVICES"));
  driver.init_result = 803;
  CHECK(
      contains(said_of_get(), "unsupported: the CUDA back end cannot run: the driver does not start: CUDA error 803"));
  driver.init_result = 0;
  std::vector<DeviceModel> models = std::move(driver.devices);
  driver.devices.clear();
  CHECK(contains(said_of_get(), "sees no device: check CUDA_VISIBLE_DEVICES; to compile only, name an architecture"));
  CHECK_FALSE(Runtime::get("cuda:sm_90a").runnable());
  driver.devices = std::move(models);
  driver.devices.front().capability = 70;
  const Rows rows(h200, DType::float32, 2, 500);
  CHECK(contains(said_of_get(), "unsupported: the device has compute capability 7.0; expected 7.5 or newer"));
  CHECK(contains(refusal([&] { Runtime::get("auto").logp(rows.forward()); }), "compute capability 7.0"));
  driver.devices.front().capability = 90;
  const auto said_of_call = [&] { return refusal([&] { Runtime::get("auto").logp(rows.forward()); }); };
  ::setenv("BILOGP_NVRTC", "/no/such/place", 1);
  CHECK(contains(said_of_call(), "compile_failed: CUDA kernels cannot be compiled: BILOGP_NVRTC names /no/such/place"));
  ::setenv("BILOGP_NVRTC", BILOGP_FAKE_NVRTC, 1);
  nvrtc_state().major = 11;
  CHECK(contains(said_of_call(), "is NVRTC 11.0; expected 12.0 or newer"));
  nvrtc_state().major = 13;
  nvrtc_state().archs = {100, 120};
  CHECK(contains(said_of_call(), "cannot compile for sm_90a or anything that runs on it; it knows sm_100, sm_120"));
}

TEST_SUITE_END();
