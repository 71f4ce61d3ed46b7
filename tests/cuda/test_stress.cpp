// Every plan many times over: what a race gets wrong, it gets wrong now and then.
#include "tests/cuda/problem.hpp"

namespace {

using cuda_test::first_device;
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

TEST_CASE("launches of every plan of the fused pass") {
  for (const Storage storage : bilogp::test::all_storages) {
    Problem problem(first_device(), {.storage = storage, .columns = 20000, .rows = 6, .seed = 12});
    for (const int plan : cuda_test::plans_of(bilogp::Operator::logp_with_gradient))
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

TEST_SUITE_END();
