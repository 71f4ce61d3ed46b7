// logp_partial: the nodes that one shard of the vocabulary contributes to each row.
#include <fmt/format.h>

#include "runtime/operators/checks.hpp"
#include "runtime/operators/launch.hpp"
#include "runtime/operators/shards.hpp"

namespace bilogp {
namespace {

struct Checked {
  int leading_rank = 0;
  std::int64_t vocab_size = 0;
  float temperature = 1;
};

Checked check_arguments(const LogpPartialArgs& args) {
  Checked checked;
  check::logits("logits", args.logits);
  const int leading = checked.leading_rank = args.logits.rank - 1;
  check_shard(args.shard_begin, args.shard_end, args.full_vocab);
  if (args.logits.shape[leading] != args.shard_end - args.shard_begin)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("logits have {} columns, but the shard [{}, {}) has {}; pass the shard's own columns",
                            args.logits.shape[leading], args.shard_begin, args.shard_end,
                            args.shard_end - args.shard_begin));
  check::id_dtype("target_ids", args.target_ids);
  check::row_input("target_ids", args.target_ids, args.logits, leading);

  const TensorView& nodes = args.nodes;
  check::dtype("nodes", nodes, DType::int32);
  const std::int64_t count = node_count(args.shard_begin, args.shard_end, args.full_vocab);
  if (nodes.rank != leading + 2)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("nodes has {} dimensions; expected {}, [..., nodes, 2]", nodes.rank, leading + 2));
  TensorView without_last = nodes;
  without_last.rank = nodes.rank - 1;
  check::shape("nodes (without its last dimension of 2)", without_last, args.logits, leading, count);
  if (nodes.shape[nodes.rank - 1] != 2)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("nodes has {} words per node; expected 2", nodes.shape[nodes.rank - 1]));
  check::last_stride_one("nodes", nodes);
  check::dtype("target_logit", args.target_logit, DType::float32);
  check::shape("target_logit", args.target_logit, args.logits, leading);
  for (const auto& [name, output] : {std::pair{"nodes", &nodes}, std::pair{"target_logit", &args.target_logit}}) {
    check::memory(name, *output);
    check::same_device(name, *output, args.logits);
    check::distinct_elements(name, *output);
    check::no_overlap(name, *output, "logits", args.logits);
  }
  checked.temperature = check::options(args.options, args.logits, leading);
  checked.vocab_size = check::vocab_size(args.options, args.full_vocab);
  if (check::wants_validation(args.options, args.logits.device))
    check::target_ids(args.target_ids, leading, checked.vocab_size, args.options.ignore_index);
  return checked;
}

} // namespace

void Runtime::logp_partial(const LogpPartialArgs& args) {
  const Checked checked = check_arguments(args);
  Runtime& runtime = Binding::launchable(*this, args.logits.device);
  const int leading = checked.leading_rank;
  RowSpace space(args.logits, leading);
  if (space.rows() == 0) return;
  const int logits = space.add(args.logits);
  const int ids = space.add(args.target_ids);
  const int nodes = space.add(args.nodes);
  const int target_logit = space.add(args.target_logit);
  const TensorView& temperatures = args.options.temperature_per_row;
  const int temperature = temperatures.present() ? space.add(temperatures) : -1;
  space.collapse();

  const Specialization spec{Operator::logp_partial, args.logits.dtype, args.target_ids.dtype};
  const cpu::KernelFunction function = Binding::cpu_function(runtime, spec);
  CallErrors errors; // bad ids are counted once, by logp_finish
  for (std::int64_t launch = 0; launch < space.launches(); ++launch) {
    kernel::LogpPartialArguments a{};
    a.options = row_options(args.options, space, checked.temperature, checked.vocab_size, temperature, launch);
    a.logits = moved_bytes(args.logits, space.offset(logits, launch));
    a.logits_strides = space.strides(logits);
    a.target_ids = moved_bytes(args.target_ids, space.offset(ids, launch));
    a.id_strides = space.strides(ids);
    a.nodes = moved<kernel::i32>(args.nodes, space.offset(nodes, launch));
    a.node_strides = space.strides(nodes);
    a.node_stride_k = args.nodes.strides[leading];
    a.target_logit = moved<float>(args.target_logit, space.offset(target_logit, launch));
    a.target_logit_strides = space.strides(target_logit);
    a.shard_begin = args.shard_begin;
    a.shard_end = args.shard_end;
    a.full_vocab = args.full_vocab;
    launch_rows(function, a, space.rows_per_launch(), args.logits.shape[leading] * size_of(args.logits.dtype),
                threads_of(args.options), 0, errors);
  }
}

} // namespace bilogp
