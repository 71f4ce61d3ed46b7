// Targets, versions, descriptions, the log callback.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/runtime/support.hpp"

using bilogp::DType;
using bilogp::Operator;
using bilogp::Runtime;
using bilogp::TensorView;
using runtime_test::Batch;
using runtime_test::refusal;
using runtime_test::says;

TEST_CASE("targets: an unknown one is refused by name, with the known ones") {
  for (const char* name : {"cpu:x86-64-v9", "tpu", "", "CPU", "cpu:x86-64-v3 ", "cuda:sm_61", "cuda:sm_90", "cuda:"}) {
    CAPTURE(name);
    const std::string said = refusal([&] { Runtime::get(name); });
    CAPTURE(said);
    CHECK(says(said, bilogp::ErrorKind::invalid_argument,
               {std::string_view(name).starts_with("cuda") ? "sm_90a" : "x86-64-v3"}));
  }
  CHECK(says(refusal([] { Runtime::get("hip"); }), bilogp::ErrorKind::unsupported, {"hip", "cpu", "cuda"}));
}

TEST_CASE("targets: CUDA without a device is refused with what to install, and its architectures are known") {
  const std::string answer = refusal([] { Runtime::get("cuda"); });
  CAPTURE(answer);
  const bool has_device = answer == "nothing thrown";
  CHECK((has_device || says(answer, bilogp::ErrorKind::unsupported, {"CUDA", "cuda:sm_90a"})));
  Runtime& turing = Runtime::get("cuda:sm_75");
  CHECK(turing.target() == "cuda:sm_75");
  if (has_device) return;
  CHECK_FALSE(turing.runnable());
  Batch batch(3, 10);
  CHECK_REFUSED(batch, unsupported, turing.logp(batch.forward()), "cuda:sm_75", "cpu");
  bilogp::LogpArgs args = batch.forward();
  for (TensorView* view : {&args.logits, &args.target_ids, &args.logp, &args.lse, &args.row_state})
    view->device = {bilogp::DeviceType::cuda, 0};
  CHECK_REFUSED(batch, unsupported, turing.logp(args), "CUDA", "driver");
  CHECK_REFUSED(batch, unsupported, Runtime::get("auto").logp(args), "CUDA", "driver");
  CHECK_REFUSED(batch, unsupported, Runtime::get("cpu").logp(args), "cpu", "cuda:0");
}

TEST_CASE("targets: a name always gives the same runtime, and cpu is this machine's level") {
  CHECK(&Runtime::get("cpu") == &Runtime::get("cpu"));
  CHECK(&Runtime::get(Runtime::get("cpu").target()) == &Runtime::get("cpu"));
  CHECK(Runtime::get("cpu").target().starts_with("cpu:"));
  CHECK(Runtime::get("cpu").runnable());
  CHECK(Runtime::get().runnable());
}

TEST_CASE("targets: one that this machine lacks warms up but does not launch") {
#if defined(__aarch64__)
  Runtime& other = Runtime::get("cpu:x86-64-v3");
#else
  Runtime& other = Runtime::get("cpu:aarch64");
#endif
  CHECK_FALSE(other.runnable());
  const std::array<bilogp::Specialization, 1> specs{{{Operator::logp_forward, DType::float32, DType::int64, 0}}};
  const bilogp::WarmupReport report = other.warmup(specs);
  REQUIRE(report.kernels.size() == 1);
  CHECK(report.kernels[0].target == other.target());
  CHECK(report.kernels[0].image_bytes > 0);
  Batch batch(3, 10);
  CHECK_REFUSED(batch, unsupported, other.logp(batch.forward()), other.target(), "this machine");
  CHECK_REFUSED(batch, unsupported, other.logp_backward(batch.backward()), other.target(), "this machine");
}

TEST_CASE("targets: the list holds every name, and each can be asked for") {
  const std::vector<std::string> names = Runtime::known_targets();
  CHECK(std::ranges::count(names, "cpu") == 1);
  CHECK(std::ranges::count(names, "cpu:x86-64-v3") == 1);
  for (const std::string& name : names) CHECK_FALSE(Runtime::get(name).target().empty());
}

TEST_CASE("warmup: after it, no call compiles, however few its rows") {
  constexpr std::int64_t vocab = 40'003; // 160 KB a row: one alone is cut among threads
  const std::array<bilogp::Specialization, 2> specs{{{Operator::logp_forward, DType::float32, DType::int64, vocab},
                                                     {Operator::logp_forward, DType::float32, DType::int64, vocab}}};
  const bilogp::WarmupReport report = Runtime::get("cpu").warmup(specs);
  REQUIRE(report.kernels.size() == 4);
  CHECK(report.kernels[1].specialization == specs[1]);
  CHECK(report.kernels[2].specialization.op == Operator::logp_partial);
  CHECK(report.kernels[3].specialization.op == Operator::logp_finish);
  const std::size_t loaded = Runtime::loaded_kernels().size();
  for (const int threads : {1, 8}) {
    Batch batch(2, vocab);
    bilogp::LogpArgs args = batch.forward();
    args.options.threads = threads;
    Runtime::get("cpu").logp(args);
    CHECK(batch.forward_differences() == "");
  }
  CHECK(Runtime::loaded_kernels().size() == loaded);
}

TEST_CASE("warmup: bad specializations are refused") {
  const auto refused = [](bilogp::Specialization spec) {
    return refusal([&] { Runtime::get("cpu").warmup(std::span(&spec, 1)); });
  };
  constexpr auto invalid = bilogp::ErrorKind::invalid_argument;
  CHECK(says(refused({Operator::logp_forward, DType::int32, DType::int64, 0}), invalid, {"int32"}));
  CHECK(says(refused({Operator::logp_forward, DType::float32, DType::float32, 0}), invalid, {"float32"}));
  CHECK(says(refused({Operator::logp_forward, DType::float32, DType::int64, -1}), invalid, {"-1"}));
  CHECK(says(refused({Operator::logp_forward, DType::float32, DType::int64, (std::int64_t{1} << 31) + 1}), invalid,
             {"2147483649"}));
  CHECK(says(refused({Operator::logp_forward, DType::float32, DType::int64, 0, bilogp::Numerics::native}),
             bilogp::ErrorKind::unsupported, {"native", "portable"}));
}

TEST_CASE("auto: follows the arguments to the CPU") {
  Batch batch(4, 100);
  Runtime::get("auto").logp(batch.forward());
  CHECK(batch.forward_differences() == "");
}

TEST_CASE("names: version, contract, descriptions") {
  CHECK(bilogp::version() == BILOGP_TEST_VERSION);
  CHECK(bilogp::contract_id() == "bilogp.canon-1.portable");
  CHECK(says(refusal([] { bilogp::contract_id(bilogp::Numerics::native); }), bilogp::ErrorKind::unsupported,
             {"native", "cuda:sm_90a"}));
  CHECK(bilogp::contract_id(bilogp::Numerics::native, "cuda:sm_90a") == "bilogp.canon-1.native.sm_90a");
  CHECK(bilogp::contract_id(bilogp::Numerics::portable, "cuda:sm_90a") == bilogp::contract_id());
  CHECK(says(refusal([] { bilogp::contract_id(bilogp::Numerics::native, "cpu:x86-64-v3"); }),
             bilogp::ErrorKind::unsupported, {"native", "x86-64-v3"}));
  CHECK(bilogp::describe({Operator::logp_forward, DType::bfloat16, DType::int64, 49152}) ==
        "logp_forward bfloat16 int64 vocab=49152 portable");
  CHECK(to_string(bilogp::KernelOrigin::store) == "store");
  CHECK(to_string(Operator::logp_finish) == "logp_finish");
  CHECK(to_string(DType::bfloat16) == "bfloat16");
}
