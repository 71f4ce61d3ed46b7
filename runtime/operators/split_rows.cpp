#include "runtime/operators/split_rows.hpp"

#include <new>
#include <vector>

#include <fmt/format.h>

#include "runtime/operators/borrowed.hpp"

namespace bilogp {
namespace {

// Blocks begin at multiples of this: a whole number of tiles for every dtype.
constexpr std::int64_t block_columns = 8192;
// One aligned block of 2^k tiles gives one node; a run of blocks at most two per level of the tree.
constexpr std::int64_t most_nodes = 64;

struct Scratch {
  std::vector<kernel::i32> nodes;
  std::vector<float> target_logits;
  std::vector<kernel::ShardNodesArgument> shards;

  void resize(std::int64_t blocks, std::int64_t rows) {
    const auto slots = static_cast<std::size_t>(blocks * rows);
    try {
      nodes.resize(slots * most_nodes * 2);
      target_logits.resize(slots);
      shards.resize(static_cast<std::size_t>(blocks));
    } catch (const std::bad_alloc&) {
      throw Error(ErrorKind::out_of_memory,
                  fmt::format("there was no memory for the partial sums of {} blocks of columns", slots));
    }
  }
};

kernel::LogpPartialArguments partial_arguments(const kernel::LogpForwardArguments& a) {
  kernel::LogpPartialArguments p{};
  p.options = a.options;
  p.options.errors = nullptr;
  p.logits = a.logits;
  p.logits_strides = a.logits_strides;
  p.target_ids = a.target_ids;
  p.id_strides = a.id_strides;
  p.full_vocab = a.options.vocab_size;
  return p;
}

kernel::LogpFinishArguments finish_arguments(const kernel::LogpForwardArguments& a, const Scratch& scratch) {
  kernel::LogpFinishArguments f{};
  f.options = a.options;
  f.shards = scratch.shards.data();
  f.shard_count = static_cast<std::int64_t>(scratch.shards.size());
  f.full_vocab = a.options.vocab_size;
  f.target_ids = a.target_ids;
  f.id_strides = a.id_strides;
  f.ids_per_row = 1;
  f.target_logit = scratch.target_logits.data();
  f.logp = a.logp;
  f.logp_strides = a.logp_strides;
  f.lse = a.lse;
  f.lse_strides = a.lse_strides;
  f.row_state = a.row_state;
  f.row_state_strides = a.row_state_strides;
  return f;
}

} // namespace

void logp_by_column_blocks(Runtime& runtime, const Specialization& forward,
                           const kernel::LogpForwardArguments& arguments, std::int64_t rows, const cpu::Crew& crew,
                           std::int64_t row_offset, CallErrors& errors) {
  const cpu::KernelFunction partial = Binding::cpu_function(runtime, partial_of(forward));
  const cpu::KernelFunction finish = Binding::cpu_function(runtime, finish_of(forward));
  const std::int64_t vocab = arguments.options.vocab_size;
  const std::int64_t units = (vocab + block_columns - 1) / block_columns;
  const std::int64_t blocks = std::min<std::int64_t>(units, std::int64_t{2} * crew.threads);
  Borrowed<Scratch> borrowed;
  Scratch& scratch = *borrowed;
  scratch.resize(blocks, rows);
  // The scratch has one stride of rows, whatever the strides of the logits are.
  const kernel::i64 inner_rows = arguments.options.inner_rows;
  const kernel::RowStrides node_strides = {inner_rows * most_nodes * 2, most_nodes * 2};
  const kernel::RowStrides logit_strides = {inner_rows, 1};
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t begin = units * b / blocks * block_columns;
    const std::int64_t end = b + 1 == blocks ? vocab : units * (b + 1) / blocks * block_columns;
    scratch.shards[static_cast<std::size_t>(b)] = {
        scratch.nodes.data() + static_cast<std::size_t>(b * rows) * most_nodes * 2, node_strides, 2, begin, end};
  }

  const LeafTable table = leaf_table_of(runtime, forward.logits_dtype, rows * vocab, crew.threads);
  const auto block = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const kernel::ShardNodesArgument& shard = scratch.shards[static_cast<std::size_t>(i / rows)];
      kernel::LogpPartialArguments p = partial_arguments(arguments);
      p.logits = static_cast<const char*>(p.logits) + shard.shard_begin * size_of(forward.logits_dtype);
      p.shard_begin = shard.shard_begin;
      p.shard_end = shard.shard_end;
      p.nodes = const_cast<kernel::i32*>(shard.nodes);
      p.node_strides = node_strides;
      p.node_stride_k = 2;
      p.target_logit = scratch.target_logits.data() + (i / rows) * rows;
      p.target_logit_strides = logit_strides;
      lend_leaf_table(p.options, table);
      partial(&p, i % rows, i % rows + 1);
    }
  };
  cpu::for_ranges(blocks * rows, 1, crew, block);

  // The target is in one block, or in none: all others hold -inf. A NaN may get lost, but then the row is poisoned.
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t b = 1; b < blocks; ++b) {
      float& best = scratch.target_logits[static_cast<std::size_t>(row)];
      const float other = scratch.target_logits[static_cast<std::size_t>(b * rows + row)];
      if (!(other <= best)) best = other;
    }
  kernel::LogpFinishArguments f = finish_arguments(arguments, scratch);
  f.target_logit_strides = logit_strides;
  std::int64_t words[4] = {};
  f.options.errors = reinterpret_cast<kernel::i64*>(words);
  finish(&f, 0, rows);
  errors.add(words, row_offset);
}

} // namespace bilogp
