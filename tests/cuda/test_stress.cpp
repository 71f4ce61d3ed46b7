// Every plan many times over: what a race gets wrong, it gets wrong now and then.
#include <utility>

#include "tests/cuda/problem.hpp"

namespace {

using cuda_test::first_device;
using cuda_test::Mix;
using cuda_test::OfBfloat16;
using cuda_test::OfFloat16;
using cuda_test::OfFloat32;
using cuda_test::Operator;
using cuda_test::Problem;
using cuda_test::Storage;

constexpr int launches = 600;

} // namespace

TEST_SUITE_BEGIN("stress");

TEST_CASE("600 launches of every forward plan") {
  for (const Storage storage : bilogp::test::all_storages)
    for (const std::int64_t rows : {2, 40, 140}) {
      Problem problem(first_device(), {.storage = storage, .columns = 33000, .rows = rows, .seed = 11});
      for (const int plan : cuda_test::plans_of(bilogp::Operator::logp_forward))
        for (int launch = 0; launch < launches / 3; ++launch) {
          problem.clear();
          problem.runtime().logp(problem.forward(nullptr, plan));
          cuda_test::wait_for(first_device(), nullptr);
          CAPTURE(plan);
          REQUIRE(problem.check_scores() == "");
        }
    }
}

TEST_CASE("600 launches of every forward plan, each row with its own temperature") {
  for (const Storage storage : bilogp::test::all_storages)
    for (const std::int64_t rows : {40, 140}) {
      Problem problem(first_device(), {.storage = storage,
                                       .columns = 33000,
                                       .rows = rows,
                                       .seed = 14,
                                       .temperatures = bilogp::test::Temperatures::per_row});
      for (const int plan : cuda_test::plans_of(bilogp::Operator::logp_forward))
        for (int launch = 0; launch < launches / 6; ++launch) {
          problem.clear();
          problem.runtime().logp(problem.forward(nullptr, plan));
          cuda_test::wait_for(first_device(), nullptr);
          CAPTURE(plan);
          REQUIRE(problem.check_scores() == "");
        }
    }
}

TEST_CASE("600 launches of every backward plan") {
  for (const Storage storage : bilogp::test::all_storages) {
    Problem problem(first_device(), {.storage = storage, .columns = 20000, .rows = 6, .seed = 15});
    problem.runtime().logp(problem.forward(nullptr));
    cuda_test::wait_for(first_device(), nullptr);
    REQUIRE(problem.check_scores() == "");
    for (const int plan : cuda_test::plans_of(bilogp::Operator::logp_backward))
      for (int launch = 0; launch < launches / 3; ++launch) {
        problem.clear_gradient();
        problem.runtime().logp_backward(problem.backward(nullptr, plan));
        cuda_test::wait_for(first_device(), nullptr);
        CAPTURE(plan);
        REQUIRE(problem.check_gradient() == "");
      }
  }
}

TEST_CASE_TEMPLATE("600 launches of every plan of the fused pass", T, OfFloat32, OfFloat16, OfBfloat16) {
  constexpr Operator op = Operator::logp_with_gradient;
  std::vector<int> left = cuda_test::plans_of(op);
  // Single blocks and clusters of two serve narrow rows, larger ones wide rows; with 300 of these all buffers come
  // round.
  for (const auto& [columns, rows] : {std::pair{20000, 6}, std::pair{20000, 300}, std::pair{49664, 300}}) {
    const Mix mix{.storage = T::storage, .columns = columns, .rows = rows, .seed = 12};
    Problem problem(first_device(), mix);
    for (const int plan : cuda_test::plans_of(op)) {
      if (plan >= bilogp::cuda::first_hopper_plan && !cuda_test::serves(plan, op, mix)) continue;
      if (rows == 300) std::erase(left, plan);
      for (int launch = 0; launch < launches / 3; ++launch) {
        problem.clear();
        problem.runtime().logp_with_gradient(problem.with_gradient(nullptr, plan));
        cuda_test::wait_for(first_device(), nullptr);
        CAPTURE(plan);
        REQUIRE(problem.check_scores() == "");
        REQUIRE(problem.check_gradient() == "");
      }
    }
  }
  CHECK(left == std::vector<int>{}); // launched as nothing but itself, with rows enough
}

TEST_SUITE_END();
