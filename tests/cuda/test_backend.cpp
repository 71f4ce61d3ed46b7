// Without a device: targets, the choice of code, plans, keys, and the search for libraries.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdlib>
#include <set>

#include "bilogp/error.hpp"
#include "runtime/backends/cuda/build_id.hpp"
#include "runtime/backends/cuda/driver.hpp"
#include "runtime/backends/cuda/libraries.hpp"
#include "runtime/backends/cuda/plans.hpp"
#include "runtime/backends/cuda/targets.hpp"

namespace {

namespace cuda = bilogp::cuda;
using bilogp::DType;
using bilogp::Operator;

// Of cards as they are: a T4, a consumer card with 99 KB, an H200, a seventh of one.
const cuda::DeviceLimits cards[] = {{75, 40, 1024, 65536, 65536, 4 << 20, false},
                                    {89, 128, 1536, 101376, 102400, 72 << 20, false},
                                    {90, 132, 2048, 232448, 233472, 60 << 20, true},
                                    {90, 16, 2048, 232448, 233472, 8 << 20, true}};

std::vector<cuda::LaunchShape> shapes() {
  std::vector<cuda::LaunchShape> all;
  for (const Operator op : {Operator::logp_forward, Operator::logp_backward, Operator::logp_partial,
                            Operator::logp_finish, Operator::logp_with_gradient})
    for (const DType dtype : {DType::float32, DType::bfloat16})
      for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{7}, std::int64_t{64}, std::int64_t{300},
                                      std::int64_t{100000}, std::int64_t{1} << 33})
        for (const std::int64_t columns : {1, 1000, 4097, 32768, 128256, 1 << 30})
          for (const int alignment : {2, 16, 256}) {
            if (alignment < size_of(dtype)) continue;
            cuda::LaunchShape shape;
            shape.op = op;
            shape.logits_dtype = dtype;
            shape.rows = rows;
            shape.columns = shape.vocab_size = shape.stored_columns = columns;
            shape.alignment = alignment;
            all.push_back(shape);
          }
  return all;
}

std::string unset(const char* name) {
  const char* value = std::getenv(name);
  std::string before = value == nullptr ? "" : value;
  ::unsetenv(name);
  return before;
}

} // namespace

TEST_CASE("targets: Hopper has its own suffix, and only what is known or newer resolves") {
  CHECK(cuda::target_of_capability(90).name == "sm_90a");
  CHECK(cuda::target_of_capability(86).name == "sm_86");
  CHECK(cuda::resolve_target("sm_121").capability == 121);
  CHECK(cuda::resolve_target("sm_130").capability == 130); // newer than the list
  for (const char* name : {"sm_90", "sm_70", "sm_75a", "90a", "", "sm_", "sm_9x"})
    CHECK_THROWS_AS(cuda::resolve_target(name), bilogp::Error);
  CHECK_THROWS_AS(cuda::target_of_capability(70), bilogp::Error);
}

TEST_CASE("code: machine code where NVRTC knows the target, else the newest older PTX") {
  const std::vector<int> known = {75, 80, 90, 100};
  CHECK(cuda::code_for(cuda::resolve_target("sm_90a"), known).architecture == "sm_90a");
  const cuda::CodeChoice newer = cuda::code_for(cuda::resolve_target("sm_120"), known);
  CHECK(newer.is_ptx);
  CHECK(newer.architecture == "compute_100");
  CHECK(cuda::code_for(cuda::resolve_target("sm_89"), known).architecture == "compute_80");
  CHECK_THROWS_AS(cuda::code_for(cuda::resolve_target("sm_75"), {80, 90}), bilogp::Error);
}

TEST_CASE("plans: every one can be launched on its card, and takes no more scratch than there is") {
  for (const cuda::DeviceLimits& card : cards)
    for (const cuda::LaunchShape& shape : shapes())
      for (const int forced : {cuda::automatic_plan, cuda::plain_rows, cuda::plain_split_rows, 17, 18, 19, 20, 21, 22,
                               23, 24, 25, 99, -7}) {
        const cuda::LaunchPlan plan = cuda::plan_launch(shape, card, forced);
        CAPTURE(card.capability);
        CAPTURE(shape.rows);
        CAPTURE(shape.columns);
        CAPTURE(forced);
        CHECK(plan.grid >= 1);
        CHECK(plan.block >= 32);
        CHECK(plan.block <= 1024);
        CHECK(plan.cluster >= 1);
        CHECK(plan.grid % plan.cluster == 0);
        CHECK(static_cast<int>(plan.shared_bytes) <= card.shared_per_block);
        CHECK(plan.nodes <= cuda::largest_nodes);
        CHECK(plan.tickets <= cuda::largest_tickets);
        const std::vector<std::uint8_t> variants = cuda::variants_of(shape.op, shape.logits_dtype, card.capability);
        CHECK(std::set<int>(variants.begin(), variants.end()).count(plan.variant) == 1);
        if (!card.has_clusters) CHECK(plan.variant == 0);
      }
}

TEST_CASE("plans: many rows of any usual vocabulary go around a ring on Hopper") {
  cuda::DeviceLimits hopper;
  hopper.capability = 90;
  hopper.multiprocessors = 132;
  hopper.shared_per_block = 227 * 1024;
  hopper.has_clusters = true;
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
    for (const bool temperatures : {false, true})
      for (const int alignment : {16, 2})
        for (const std::int64_t columns : {4096, 32000, 50304, 128256, 151936, 200064, 256000, 262144}) {
          cuda::LaunchShape shape;
          shape.logits_dtype = dtype;
          shape.rows = 4096;
          shape.columns = shape.vocab_size = shape.stored_columns = columns;
          shape.alignment = alignment;
          shape.has_row_temperatures = temperatures;
          CAPTURE(columns);
          CAPTURE(to_string(dtype));
          CAPTURE(alignment);
          CHECK(cuda::plan_launch(shape, hopper, cuda::automatic_plan).variant != 0);
        }
}

TEST_CASE("plans: cut rows are covered by their parts, which are powers of two") {
  for (const cuda::DeviceLimits& card : cards)
    for (const cuda::LaunchShape& shape : shapes()) {
      const cuda::LaunchPlan plan = cuda::plan_launch(shape, card, cuda::plain_split_rows);
      if (plan.variant != 0 || plan.gpu.blocks_per_row == 1) continue;
      const std::int64_t part = plan.gpu.columns_per_block;
      CHECK((part & (part - 1)) == 0);
      CHECK(part * plan.gpu.blocks_per_row >= shape.columns);
      CHECK(part * (plan.gpu.blocks_per_row - 1) < shape.columns);
    }
}

TEST_CASE("libraries: what is named but not there is said, with what to do") {
  const std::string nvrtc_before = unset("BILOGP_NVRTC");
  ::setenv("BILOGP_NVRTC", "/no/such/place", 1);
  const cuda::NvrtcFile file = cuda::find_nvrtc(0);
  CHECK(file.path.empty());
  CHECK(file.reason.find("/no/such/place") != std::string::npos);
  CHECK_THROWS_AS(cuda::load_nvrtc(file), bilogp::Error);
  ::unsetenv("BILOGP_NVRTC");
  if (!nvrtc_before.empty()) ::setenv("BILOGP_NVRTC", nvrtc_before.c_str(), 1);
  ::setenv("BILOGP_CUDA_DRIVER", "/no/such/libcuda.so", 1);
  std::string why;
  CHECK(cuda::try_driver(&why) == nullptr);
  CHECK(why.find("/no/such/libcuda.so") != std::string::npos);
  CHECK(why.find("NVIDIA driver") != std::string::npos);
  // A library that is no driver.
  ::setenv("BILOGP_CUDA_DRIVER", "libm.so.6", 1);
  CHECK(cuda::try_driver(&why) == nullptr);
  CHECK(why.find("12.0 or newer") != std::string::npos);
  ::unsetenv("BILOGP_CUDA_DRIVER");
}

TEST_CASE("libraries: a build is told from another by its file") {
  const std::string own = cuda::identity_of_library("/proc/self/exe");
  CHECK_FALSE(own.empty());
  CHECK(own == cuda::identity_of_library("/proc/self/exe"));
  CHECK(cuda::identity_of_library("/no/such/file").empty());
  CHECK_FALSE(cuda::identity_of_library("/proc/self/cmdline") == own);
}
