// The forward pass over shards of the vocabulary.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "tests/cpu/batch.hpp"
#include "tests/cpu/batch_bits.hpp"

namespace bilogp::test {

std::string Batch::check_shards(Runtime& runtime, const std::vector<std::int64_t>& cuts) {
  std::vector<char> logits_memory;
  std::vector<char> id_memory;
  const TensorView whole = logits(logits_memory);
  const std::vector<char> given = logits_memory;
  const TensorView target_ids = ids(id_memory);
  std::vector<std::int64_t> bounds = cuts;
  bounds.insert(bounds.begin(), 0);
  bounds.push_back(columns_);
  const auto n = static_cast<std::size_t>(rows());
  std::vector<float> best(n, -std::numeric_limits<float>::infinity());
  std::vector<std::vector<std::int32_t>> nodes(bounds.size() - 1);
  std::vector<ShardNodes> shards;
  for (std::size_t s = 0; s + 1 < bounds.size(); ++s) {
    LogpPartialArgs args;
    args.shard_begin = bounds[s];
    args.shard_end = bounds[s + 1];
    args.full_vocab = columns_;
    args.logits = whole;
    args.logits.data = static_cast<char*>(whole.data) + args.shard_begin * bytes_of(storage_);
    args.logits.shape[1] = args.shard_end - args.shard_begin;
    args.target_ids = target_ids;
    const std::int64_t count = node_count(args.shard_begin, args.shard_end, columns_);
    nodes[s].assign(n * static_cast<std::size_t>(count) * 2, -7);
    args.nodes = TensorView::contiguous(nodes[s].data(), DType::int32, {rows(), count, 2});
    std::vector<float> target_logit(n, untouched);
    args.target_logit = TensorView::contiguous(target_logit.data(), DType::float32, {rows()});
    args.options = call_options();
    calls->logp_partial(runtime, args);
    for (std::size_t r = 0; r < n; ++r)
      if (!(target_logit[r] <= best[r])) best[r] = target_logit[r];
    shards.push_back({args.shard_begin, args.shard_end, args.nodes});
  }
  std::reverse(shards.begin(), shards.end()); // any order will do
  std::vector<float> logp(n, untouched);
  std::vector<float> lse(n, untouched);
  std::vector<std::int32_t> state(2 * n, -7);
  LogpFinishArgs finish;
  finish.shards = shards;
  finish.full_vocab = columns_;
  finish.target_ids = target_ids;
  finish.target_logit = TensorView::contiguous(best.data(), DType::float32, {rows()});
  finish.logp = TensorView::contiguous(logp.data(), DType::float32, {rows()});
  finish.lse = TensorView::contiguous(lse.data(), DType::float32, {rows()});
  finish.row_state = TensorView::contiguous(state.data(), DType::int32, {rows(), 2});
  finish.options = call_options();
  calls->logp_finish(runtime, finish);
  const std::string what = fmt::format("{} shards", shards.size());
  const std::string difference = compare(what, float_bits(logp), float_bits(lse), state);
  return difference.empty() ? compare_logits(what, given, logits_memory) : difference;
}

} // namespace bilogp::test
