// Without a device: targets, the choice of code, and plans.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cuda/plans.hpp"
#include "runtime/backends/cuda/targets.hpp"

namespace {

namespace cuda = bilogp::cuda;
using bilogp::DType;
using bilogp::Operator;

// Of cards as they are: Turing, Ampere (data centre, consumer), Ada, Hopper (SXM, PCIe, a slice of one), Blackwell
// (data centre, consumer, whose clusters have no plans here).
std::vector<cuda::DeviceLimits> cards() {
  std::vector<cuda::DeviceLimits> all = {{75, 40, 1024, 65536, 65536, 4 << 20, false},
                                         {80, 108, 2048, 166912, 167936, 40 << 20, false},
                                         {86, 84, 1536, 101376, 102400, 6 << 20, false},
                                         {89, 128, 1536, 101376, 102400, 72 << 20, false},
                                         {120, 170, 1536, 101376, 102400, 96 << 20, false}};
  for (const int multiprocessors : {132, 114, 16})
    for (const int cluster : {16, 8, 4, 1})
      all.push_back({90, multiprocessors, 2048, 232448, 233472, 50 << 20, true, cluster});
  all.push_back({100, 148, 2048, 232448, 233472, 126 << 20, true, 16});
  all.push_back({90, 132, 2048, 101376, 102400, 50 << 20, true, 16}); // no such card: plans must shrink or give up
  all.push_back({90, 1, 2048, 49152, 65536, 1 << 20, true, 2});
  for (const int multiprocessors : {1, 2, 7, 8}) // fewer than a cluster has blocks
    all.push_back({90, multiprocessors, 2048, 232448, 233472, 8 << 20, true, 16});
  return all;
}

std::vector<cuda::LaunchShape> shapes() {
  std::vector<cuda::LaunchShape> all;
  const auto add = [&](Operator op, DType dtype, std::int64_t rows, std::int64_t columns) {
    for (const int alignment : {2, 16, 256}) {
      if (alignment < size_of(dtype)) continue;
      cuda::LaunchShape shape;
      shape.op = op;
      shape.logits_dtype = dtype;
      shape.rows = rows;
      shape.columns = shape.vocab_size = shape.stored_columns = columns;
      shape.alignment = alignment;
      const std::size_t turn = all.size();
      shape.has_row_temperatures = turn % 3 == 1;
      shape.numerics = turn % 5 == 2 ? bilogp::Numerics::native : bilogp::Numerics::portable;
      shape.in_place = turn % 2 == 1;
      if (turn % 4 == 3) shape.vocab_size = shape.columns = std::max<std::int64_t>(1, columns - columns / 7);
      if (op == Operator::logp_backward) shape.columns = columns;
      all.push_back(shape);
    }
  };
  for (const Operator op : {Operator::logp_forward, Operator::logp_backward, Operator::logp_partial,
                            Operator::logp_finish, Operator::logp_with_gradient})
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
      for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{7}, std::int64_t{64}, std::int64_t{300},
                                      std::int64_t{100000}, std::int64_t{1} << 33})
        for (const std::int64_t columns : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{4097}, std::int64_t{32768},
                                           std::int64_t{128256}, std::int64_t{300000}, std::int64_t{1} << 31})
          add(op, dtype, rows, columns);
  return all;
}

// What a launch of this plan on this card would be refused for; "" if nothing.
std::string wrong_with(const cuda::LaunchPlan& plan, const cuda::LaunchShape& shape, const cuda::DeviceLimits& card) {
  if (plan.grid < 1 || plan.grid > 0x7fffffffU) return fmt::format("{} blocks", plan.grid);
  if (plan.block < 32 || plan.block > 1024 || plan.block % 32 != 0) return fmt::format("{} threads", plan.block);
  if (plan.cluster < 1 || plan.grid % plan.cluster != 0)
    return fmt::format("{} blocks in clusters of {}", plan.grid, plan.cluster);
  if (static_cast<int>(plan.cluster) > (card.has_clusters ? card.largest_cluster : 1))
    return fmt::format("a cluster of {}", plan.cluster);
  if (static_cast<std::int64_t>(plan.shared_bytes) > card.shared_per_block)
    return fmt::format("{} bytes of shared memory", plan.shared_bytes);
  if (plan.nodes < 0 || plan.nodes > cuda::largest_nodes || plan.tickets < 0 || plan.tickets > cuda::largest_tickets)
    return fmt::format("{} nodes and {} tickets", plan.nodes, plan.tickets);
  const std::vector<std::uint8_t> variants = cuda::variants_of(shape.op, card.capability);
  if (std::ranges::find(variants, plan.variant) == variants.end()) return fmt::format("the plan {}", plan.variant);
  if (!card.has_clusters && plan.variant != 0) return fmt::format("the Hopper plan {}", plan.variant);
  return {};
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
  std::vector<int> plans = {cuda::automatic_plan, cuda::plain_rows, cuda::plain_split_rows, 99, -7};
  for (int variant = 0; variant < 24; ++variant) plans.push_back(cuda::first_hopper_plan + variant);
  for (const cuda::DeviceLimits& card : cards())
    for (const cuda::LaunchShape& shape : shapes())
      for (const int forced : plans) {
        const std::string wrong = wrong_with(cuda::plan_launch(shape, card, forced), shape, card);
        if (wrong.empty()) continue;
        FAIL_CHECK(fmt::format("sm_{} with {} multiprocessors, plan {} for {} x {} of {} in {}: {}", card.capability,
                               card.multiprocessors, forced, shape.rows, shape.vocab_size, shape.stored_columns,
                               to_string(shape.logits_dtype), wrong));
      }
}

TEST_CASE("plans: without large clusters few rows still have several blocks each, and many rows their ring") {
  for (const int largest : {16, 8, 4, 2, 1}) {
    const cuda::DeviceLimits card{90, 16, 2048, 232448, 233472, 8 << 20, true, largest};
    cuda::LaunchShape shape;
    shape.logits_dtype = DType::bfloat16;
    shape.columns = shape.vocab_size = shape.stored_columns = 128256;
    shape.alignment = 256;
    shape.rows = 1;
    const cuda::LaunchPlan one = cuda::plan_launch(shape, card, cuda::automatic_plan);
    CAPTURE(largest);
    CHECK(one.grid >= 3);
    shape.rows = 4000;
    CHECK(cuda::plan_launch(shape, card, cuda::automatic_plan).shared_bytes > 100000);
    shape.op = Operator::logp_with_gradient;
    CHECK(static_cast<int>(cuda::plan_launch(shape, card, cuda::automatic_plan).cluster) <= largest);
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

TEST_CASE("plans: rows without ids take the plain ones, which ask for none") {
  for (const cuda::DeviceLimits& card : cards())
    for (cuda::LaunchShape shape : shapes()) {
      if (shape.op != Operator::logp_forward) continue;
      shape.ids_per_row = 0;
      for (const int forced : {cuda::automatic_plan, cuda::first_hopper_plan + 1, cuda::first_hopper_plan + 12})
        if (cuda::plan_launch(shape, card, forced).variant != 0) FAIL_CHECK("a plan that reads an id");
    }
}

TEST_CASE("plans: cut rows are covered by their parts, which are powers of two") {
  for (const cuda::DeviceLimits& card : cards())
    for (const cuda::LaunchShape& shape : shapes()) {
      const cuda::LaunchPlan plan = cuda::plan_launch(shape, card, cuda::plain_split_rows);
      if (plan.variant != 0 || plan.gpu.blocks_per_row == 1) continue;
      const std::int64_t part = plan.gpu.columns_per_block;
      CHECK((part & (part - 1)) == 0);
      CHECK(part * plan.gpu.blocks_per_row >= shape.columns);
      CHECK(part * (plan.gpu.blocks_per_row - 1) < shape.columns);
    }
}
