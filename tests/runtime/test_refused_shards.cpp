// logp_partial and logp_finish: shards that overlap, leave gaps or lie, and node counts.
#include <bit>

#include <doctest/doctest.h>

#include "tests/runtime/support.hpp"

using bilogp::DType;
using bilogp::ShardNodes;
using bilogp::TensorView;
using runtime_test::Batch;

namespace {

bilogp::Runtime& cpu() {
  return bilogp::Runtime::get("cpu");
}

// Two shards [0, 24) and [24, 40) of every row of a batch of 40 columns.
struct TwoShards {
  Batch batch{3, 40};
  std::vector<std::int32_t> left, right;
  std::vector<float> target_left = std::vector<float>(3), target_right = std::vector<float>(3);
  std::int64_t left_count = bilogp::node_count(0, 24, 40), right_count = bilogp::node_count(24, 40, 40);
  std::vector<ShardNodes> shards;

  TwoShards() {
    left.resize(static_cast<std::size_t>(6 * left_count));
    right.resize(static_cast<std::size_t>(6 * right_count));
    cpu().logp_partial(partial(0, 24));
    cpu().logp_partial(partial(24, 40));
    for (std::size_t row = 0; row < 3; ++row) target_left[row] = std::max(target_left[row], target_right[row]);
    shards = {{24, 40, nodes(24)}, {0, 24, nodes(0)}};
  }
  TensorView nodes(std::int64_t begin) {
    return begin == 0 ? TensorView::contiguous(left.data(), DType::int32, {3, left_count, 2})
                      : TensorView::contiguous(right.data(), DType::int32, {3, right_count, 2});
  }
  bilogp::LogpPartialArgs partial(std::int64_t begin, std::int64_t end) {
    bilogp::LogpPartialArgs args;
    args.logits = TensorView::strided(batch.logits.data() + begin, DType::float32, {3, end - begin}, {40, 1});
    args.target_ids = TensorView::contiguous(batch.ids.data(), DType::int64, {3});
    args.shard_begin = begin;
    args.shard_end = end;
    args.full_vocab = 40;
    args.nodes = nodes(begin);
    args.target_logit = TensorView::contiguous((begin == 0 ? target_left : target_right).data(), DType::float32, {3});
    return args;
  }
  bilogp::LogpFinishArgs finish() {
    bilogp::LogpFinishArgs args;
    args.shards = shards;
    args.full_vocab = 40;
    args.target_ids = TensorView::contiguous(batch.ids.data(), DType::int64, {3});
    args.target_logit = TensorView::contiguous(target_left.data(), DType::float32, {3});
    args.logp = TensorView::contiguous(batch.logp.data(), DType::float32, {3});
    args.lse = TensorView::contiguous(batch.lse.data(), DType::float32, {3});
    args.row_state = TensorView::contiguous(batch.row_state.data(), DType::int32, {3, 2});
    return args;
  }
};

} // namespace

TEST_CASE("shards: in any order they give the reference's bits") {
  TwoShards two;
  cpu().logp_finish(two.finish());
  CHECK(two.batch.forward_differences() == "");
}

TEST_CASE("shards: sets that do not cover the vocabulary once are refused") {
  TwoShards two;
  bilogp::LogpFinishArgs args = two.finish();
  SUBCASE("none") {
    args.shards = {};
    CHECK_REFUSED(two.batch, invalid_argument, cpu().logp_finish(args), "no shards");
  }
  SUBCASE("one twice") {
    two.shards.push_back(two.shards[1]);
    args.shards = two.shards;
    CHECK_REFUSED(two.batch, invalid_argument, cpu().logp_finish(args), "begins at column 0", "end at 24", "[0, 40)");
  }
  SUBCASE("overlapping") {
    two.shards[0].shard_begin = 20;
    CHECK_REFUSED(two.batch, invalid_argument, cpu().logp_finish(args), "begins at column 20", "end at 24");
  }
  SUBCASE("a gap") {
    two.shards[0].shard_begin = 32;
    CHECK_REFUSED(two.batch, invalid_argument, cpu().logp_finish(args), "begins at column 32", "end at 24");
  }
  SUBCASE("the last one missing") {
    args.shards = args.shards.subspan(1);
    CHECK_REFUSED(two.batch, invalid_argument, cpu().logp_finish(args), "24", "40");
  }
  SUBCASE("an empty one") {
    two.shards[0].shard_begin = 40;
    CHECK_REFUSED(two.batch, invalid_argument, cpu().logp_finish(args), "[40, 40)", "begin < end");
  }
  SUBCASE("one beyond the vocabulary") {
    two.shards[0].shard_end = 41;
    CHECK_REFUSED(two.batch, invalid_argument, cpu().logp_finish(args), "[24, 41)", "40");
  }
}

TEST_CASE("shards: wrong nodes are refused") {
  TwoShards two;
  SUBCASE("one node too few, to finish") {
    --two.shards[0].nodes.shape[1];
    CHECK_REFUSED(two.batch, invalid_argument, cpu().logp_finish(two.finish()), "the shard [24, 40)",
                  "[3, " + std::to_string(two.right_count) + "]");
  }
  SUBCASE("three words per node, to finish") {
    two.shards[0].nodes.shape[2] = 3;
    CHECK_REFUSED(two.batch, invalid_argument, cpu().logp_finish(two.finish()), "3", "expected 2");
  }
  SUBCASE("no nodes at all, to finish") {
    two.shards[0].nodes = {};
    two.shards[0].nodes.dtype = DType::int32;
    CHECK_REFUSED(two.batch, invalid_argument, cpu().logp_finish(two.finish()), "the shard [24, 40)");
  }
  SUBCASE("one node too many, from partial") {
    bilogp::LogpPartialArgs args = two.partial(0, 24);
    ++args.nodes.shape[1];
    CHECK_REFUSED(two.batch, invalid_argument, cpu().logp_partial(args), "nodes",
                  "[3, " + std::to_string(two.left_count) + "]");
  }
  SUBCASE("no nodes, from partial") {
    bilogp::LogpPartialArgs args = two.partial(0, 24);
    args.nodes = {};
    args.nodes.dtype = DType::int32;
    CHECK_REFUSED(two.batch, invalid_argument, cpu().logp_partial(args), "nodes");
  }
  SUBCASE("columns of another shard, from partial") {
    bilogp::LogpPartialArgs args = two.partial(0, 24);
    args.shard_end = 25;
    CHECK_REFUSED(two.batch, invalid_argument, cpu().logp_partial(args), "24 columns", "[0, 25)");
  }
}

TEST_CASE("shards: an output over the nodes is refused") {
  TwoShards two;
  bilogp::LogpFinishArgs args = two.finish();
  args.logp.data = two.left.data();
  CHECK_REFUSED(two.batch, invalid_argument, cpu().logp_finish(args), "logp", "memory of its own");
}

TEST_CASE("node_count: few nodes, one for a whole row, and refused bounds") {
  CHECK(bilogp::node_count(0, 49152, 49152) == 1);
  CHECK(bilogp::node_count(0, 1, 1) == 1);
  CHECK(bilogp::node_count(0, 3, 8) == 2);
  CHECK(bilogp::node_count(3, 8, 8) == 2);
  CHECK(bilogp::node_count(0, std::int64_t{1} << 31, std::int64_t{1} << 31) == 1);
  for (std::int64_t full = 1; full <= 70; ++full)
    for (std::int64_t begin = 0; begin < full; ++begin)
      for (std::int64_t end = begin + 1; end <= full; ++end)
        CHECK(bilogp::node_count(begin, end, full) <= 2 * std::bit_width(static_cast<std::uint64_t>(full)) + 1);
  using runtime_test::refusal;
  using runtime_test::says;
  constexpr auto invalid = bilogp::ErrorKind::invalid_argument;
  CHECK(says(refusal([] { bilogp::node_count(-1, 2, 8); }), invalid, {"[-1, 2)", "<= 8"}));
  CHECK(says(refusal([] { bilogp::node_count(2, 2, 8); }), invalid, {"[2, 2)"}));
  CHECK(says(refusal([] { bilogp::node_count(2, 9, 8); }), invalid, {"[2, 9)"}));
  CHECK(says(refusal([] { bilogp::node_count(0, 1, 0); }), invalid, {"full_vocab is 0"}));
}
