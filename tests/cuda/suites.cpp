#include "tests/cuda/suites.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>

namespace cuda_test {

namespace cuda = bilogp::cuda;

std::vector<int> plans_of(Operator op) {
  std::vector<int> plans = {cuda::automatic_plan, cuda::plain_rows, cuda::plain_split_rows};
  const cuda::DeviceLimits& limits = cuda::Device::get(first_device().index).limits();
  for (const std::uint8_t variant : cuda::variants_of(op, limits.has_clusters ? limits.capability : 0))
    if (variant != 0) plans.push_back(cuda::first_hopper_plan + variant);
  return plans;
}

std::vector<int> all_plans() {
  std::vector<int> plans;
  for (const Operator op : {Operator::logp_forward, Operator::logp_backward, Operator::logp_partial,
                            Operator::logp_finish, Operator::logp_with_gradient})
    for (const int plan : plans_of(op))
      if (std::ranges::find(plans, plan) == plans.end()) plans.push_back(plan);
  return plans;
}

bool serves(int plan, Operator op, const Mix& mix, Numerics numerics) {
  cuda::LaunchShape shape;
  shape.numerics = numerics;
  shape.op = op;
  shape.logits_dtype = bilogp::test::dtype_of(mix.storage);
  shape.rows = mix.rows;
  shape.columns = shape.vocab_size = shape.stored_columns = mix.columns;
  shape.alignment = 256;
  shape.has_row_temperatures = mix.temperatures != bilogp::test::Temperatures::scalar;
  return cuda::plan_serves(shape, cuda::Device::get(first_device().index).limits(), plan);
}

namespace {

// What a forced Hopper plan serves; what it does not is the same under every other number.
std::string check_planned(Batch& batch, int plan) {
  Runtime& runtime = Runtime::get("cuda");
  const auto has_plan = [&](Operator op) { return std::ranges::count(plans_of(op), plan) > 0; };
  std::string difference;
  if (has_plan(Operator::logp_forward)) difference = batch.check_forward(runtime);
  if (batch.ids_per_row() > 1) return difference;
  for (const bool in_place : {false, true}) {
    if (difference.empty() && has_plan(Operator::logp_backward)) difference = batch.check_backward(runtime, in_place);
    if (difference.empty() && has_plan(Operator::logp_with_gradient))
      difference = batch.check_with_gradient(runtime, in_place);
  }
  return difference;
}

} // namespace

void check_mix_on_device(const Mix& mix, std::int64_t cuts, std::vector<int> plans) {
  Batch batch = bilogp::test::mixed_batch(mix);
  std::mt19937_64 random(mix.seed);
  const std::vector<std::int64_t> bounds = bilogp::test::random_cuts(random, mix.columns, cuts);
  check_batch_on_device(std::move(batch), bilogp::test::describe(mix), bounds, std::move(plans));
}

void check_batch_on_device(Batch batch, const std::string& what, const std::vector<std::int64_t>& bounds,
                           std::vector<int> plans) {
  batch.score_all(test_threads());
  DeviceCalls calls(first_device());
  batch.calls = &calls;
  if (plans.empty()) plans = all_plans();
  for (const int plan : plans) {
    calls.plan = plan;
    const std::string difference = plan < cuda::first_hopper_plan
                                       ? bilogp::test::check_everything(batch, Runtime::get("cuda"), bounds)
                                       : check_planned(batch, plan);
    CHECK_MESSAGE(difference.empty(), "plan " << plan << ", " << what << ": " << difference);
  }
}

} // namespace cuda_test
