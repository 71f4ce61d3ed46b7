// Launch plans: each is forced where it serves, and gives the one answer; native numerics give one answer of their own.
#include <bit>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "tests/cuda/problem.hpp"

namespace {

namespace cuda = bilogp::cuda;
using bilogp::Operator;
using bilogp::test::Temperatures;
using cuda_test::first_device;
using cuda_test::Mix;
using cuda_test::Numerics;
using cuda_test::Problem;
using cuda_test::Storage;

constexpr std::int64_t row_counts[] = {2, 7, 33, 66, 140, 300};
constexpr std::int64_t widths[] = {32768, 16384, 8192, 65536, 128256, 151936};

// A batch that this plan serves as itself; without rows where there is none.
Mix served_by(int plan, Operator op, Storage storage, Numerics numerics = Numerics::portable) {
  for (const Temperatures temperatures : {Temperatures::scalar, Temperatures::per_row_with_bad})
    for (const std::int64_t columns : widths)
      for (const std::int64_t rows : row_counts) {
        const Mix mix{.storage = storage, .columns = columns, .rows = rows, .seed = 31, .temperatures = temperatures};
        if (cuda_test::serves(plan, op, mix, numerics)) return mix;
      }
  return {};
}

bool is_loaded(Operator op, Storage storage, int variant) {
  for (const bilogp::KernelInfo& kernel : bilogp::Runtime::loaded_kernels())
    if (kernel.specialization.op == op && kernel.specialization.variant == variant &&
        kernel.specialization.logits_dtype == bilogp::test::dtype_of(storage))
      return true;
  return false;
}

} // namespace

TEST_SUITE_BEGIN("plans");

TEST_CASE("every plan is forced where it serves") {
  for (const Operator op : {Operator::logp_forward, Operator::logp_backward, Operator::logp_with_gradient})
    for (const Storage storage : bilogp::test::all_storages)
      for (const int plan : cuda_test::plans_of(op)) {
        if (plan < cuda::first_hopper_plan) continue;
        const Mix mix = served_by(plan, op, storage);
        CAPTURE(plan);
        CAPTURE(to_string(op));
        if (mix.rows == 0) { // its answers are compared with the other plans' below
          CHECK_MESSAGE(served_by(plan, op, storage, Numerics::native).rows > 0, "no shape is served by this plan");
          continue;
        }
        cuda_test::check_mix_on_device(mix, 0, {plan});
        CHECK(is_loaded(op, storage, plan - cuda::first_hopper_plan));
      }
}

TEST_CASE("native numerics: one answer whatever the plan, close to the portable one") {
  // The widest is for clusters of eight with few buffers.
  constexpr std::pair<std::int64_t, std::int64_t> shapes[] = {{32768, 3}, {32768, 150}, {49664, 150}};
  for (const Storage storage : bilogp::test::all_storages)
    for (const auto& [columns, rows] : shapes) {
      Problem problem(first_device(), {.storage = storage, .columns = columns, .rows = rows, .seed = 13});
      const auto run = [&](int plan, Numerics numerics) {
        problem.clear();
        bilogp::LogpGradientArgs both = problem.with_gradient(nullptr, plan);
        both.options.numerics = numerics;
        problem.runtime().logp_with_gradient(both);
        cuda_test::wait_for(first_device(), nullptr);
        static_cast<void>(problem.check_gradient());
        const std::vector<char> gradient = problem.gradient();
        bilogp::LogpArgs forward = problem.forward(nullptr, plan);
        forward.options.numerics = numerics;
        problem.runtime().logp(forward);
        cuda_test::wait_for(first_device(), nullptr);
        static_cast<void>(problem.check_scores());
        return std::pair(problem.scores(), gradient);
      };
      const auto portable = run(cuda::plain_rows, Numerics::portable);
      const auto native = run(cuda::plain_rows, Numerics::native);
      for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row)
        CHECK(std::abs(std::bit_cast<float>(native.first[row]) - std::bit_cast<float>(portable.first[row])) < 1e-4F);
      for (const int plan : cuda_test::all_plans()) {
        CAPTURE(plan);
        const auto other = run(plan, Numerics::native);
        CHECK(other.first == native.first);
        CHECK(other.second == native.second);
      }
    }
}

TEST_SUITE_END();

// Little of everything, for compute-sanitizer.
TEST_SUITE_BEGIN("short");

TEST_CASE("every operator under every plan, once") {
  for (const Storage storage : bilogp::test::all_storages) {
    cuda_test::check_mix_on_device({.storage = storage, .columns = 8200, .rows = 9, .seed = 41}, 2);
    cuda_test::check_mix_on_device(
        {.storage = storage, .columns = 4101, .rows = 5, .seed = 42, .layout = {.row_padding = 1, .misalignment = 4}},
        1);
  }
}

TEST_CASE("rows enough to come round to every buffer of the rings again") {
  constexpr int ring = cuda::first_hopper_plan + 1, ring_of_temperatures = ring + 1;
  for (const Storage storage : {Storage::float32, Storage::bfloat16}) {
    cuda_test::check_mix_on_device({.storage = storage, .columns = 4352, .rows = 1400, .seed = 43}, 0, {ring});
    cuda_test::check_mix_on_device(
        {.storage = storage, .columns = 4352, .rows = 1400, .seed = 44, .temperatures = Temperatures::per_row}, 0,
        {ring_of_temperatures});
  }
}

TEST_CASE("more columns are stored than count, in the last tile of ordinary rows") {
  // What counts of it fills whole spans of the lanes, so that an ordinary row's last tile is as plain as the others.
  for (const Storage storage : bilogp::test::all_storages)
    cuda_test::check_mix_on_device({.storage = storage, .columns = 8320, .rows = 60, .seed = 47, .vocab_size = 8256},
                                   1);
}

TEST_CASE("rows enough for the fused pass to fill its ring again") {
  for (const Storage storage : {Storage::float32, Storage::bfloat16}) {
    std::vector<int> plans = cuda_test::plans_of(Operator::logp_with_gradient);
    std::erase_if(plans, [](int plan) { return plan < cuda::first_hopper_plan; });
    if (plans.empty()) continue; // a device without them
    // In clusters of one and two, then of four and eight, too.
    cuda_test::check_mix_on_device({.storage = storage, .columns = 16640, .rows = 700, .seed = 45}, 0, plans);
    cuda_test::check_mix_on_device({.storage = storage, .columns = 49664, .rows = 200, .seed = 46}, 0, plans);
  }
}

TEST_SUITE_END();
