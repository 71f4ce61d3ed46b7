// logp_finish: joins the nodes of all shards of a vocabulary, then logp, lse and the row state.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "runtime/operators/checks.hpp"
#include "runtime/operators/launch.hpp"
#include "runtime/operators/shards.hpp"

namespace bilogp {
namespace {

// The shards in column order; throws unless they cover [0, full_vocab) once.
std::vector<ShardNodes> ordered_shards(const LogpFinishArgs& args, int leading) {
  if (args.shards.empty())
    throw Error(ErrorKind::invalid_argument, "logp_finish was given no shards; expected the nodes of all of them");
  std::vector<ShardNodes> shards(args.shards.begin(), args.shards.end());
  std::ranges::sort(shards, {}, &ShardNodes::shard_begin);
  std::int64_t covered = 0;
  for (const ShardNodes& shard : shards) {
    check_shard(shard.shard_begin, shard.shard_end, args.full_vocab);
    if (shard.shard_begin != covered)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("a shard begins at column {}, but the shards before it end at {}; expected shards that "
                              "cover [0, {}) once",
                              shard.shard_begin, covered, args.full_vocab));
    covered = shard.shard_end;
    const TensorView& nodes = shard.nodes;
    const std::string name = fmt::format("nodes of the shard [{}, {})", shard.shard_begin, shard.shard_end);
    check::dtype(name, nodes, DType::int32);
    if (nodes.rank != leading + 2)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{} have {} dimensions; expected {}, [..., nodes, 2]", name, nodes.rank, leading + 2));
    TensorView without_last = nodes;
    without_last.rank = nodes.rank - 1;
    check::shape(name + " (without the last dimension of 2)", without_last, args.target_ids, leading,
                 node_count(shard.shard_begin, shard.shard_end, args.full_vocab));
    if (nodes.shape[nodes.rank - 1] != 2)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{} has {} words per node; expected 2", name, nodes.shape[nodes.rank - 1]));
    check::last_stride_one(name, nodes);
    check::memory(name, nodes);
    check::same_device(name, nodes, args.target_ids);
  }
  if (covered != args.full_vocab)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the shards end at column {}; expected them to cover [0, {})", covered, args.full_vocab));
  return shards;
}

void check_output(std::string_view name, const TensorView& output, const LogpFinishArgs& args, int leading, DType dtype,
                  std::int64_t tail) {
  check::dtype(name, output, dtype);
  check::shape(name, output, args.target_ids, leading, tail);
  check::memory(name, output);
  check::same_device(name, output, args.target_ids);
  check::distinct_elements(name, output);
  check::no_overlap(name, output, "target_ids", args.target_ids);
  for (const ShardNodes& shard : args.shards) check::no_overlap(name, output, "nodes", shard.nodes);
}

} // namespace

void Runtime::logp_finish(const LogpFinishArgs& args) {
  check::id_dtype("target_ids", args.target_ids);
  check::memory("target_ids", args.target_ids);
  const int leading = args.target_ids.rank;
  if (leading < 1) throw Error(ErrorKind::invalid_argument, "target_ids has no dimension; expected [...]");
  const std::vector<ShardNodes> shards = ordered_shards(args, leading);
  check::dtype("target_logit", args.target_logit, DType::float32);
  check::row_input("target_logit", args.target_logit, args.target_ids, leading);
  check_output("logp", args.logp, args, leading, DType::float32, -1);
  if (args.lse.present()) check_output("lse", args.lse, args, leading, DType::float32, -1);
  if (args.row_state.present()) {
    check_output("row_state", args.row_state, args, leading, DType::int32, 2);
    check::last_stride_one("row_state", args.row_state);
  }
  const float temperature = check::options(args.options, args.target_ids, leading);
  const std::int64_t vocab_size = check::vocab_size(args.options, args.full_vocab);
  if (check::wants_validation(args.options, args.target_ids.device))
    check::target_ids(args.target_ids, leading, vocab_size, args.options.ignore_index);

  Runtime& runtime = Binding::launchable(*this, args.target_ids.device);
  RowSpace space(args.target_ids, leading);
  if (space.rows() == 0) return;
  const int ids = space.add(args.target_ids);
  const int target_logit = space.add(args.target_logit);
  const int logp = space.add(args.logp);
  const int lse = args.lse.present() ? space.add(args.lse) : -1;
  const int row_state = args.row_state.present() ? space.add(args.row_state) : -1;
  const TensorView& temperatures = args.options.temperature_per_row;
  const int temperature_slot = temperatures.present() ? space.add(temperatures) : -1;
  std::vector<int> node_slots;
  for (const ShardNodes& shard : shards) node_slots.push_back(space.add(shard.nodes));
  space.collapse();

  const Specialization spec{Operator::logp_finish, DType::float32, args.target_ids.dtype};
  const cpu::KernelFunction function = Binding::cpu_function(runtime, spec);
  std::vector<kernel::ShardNodesArgument> shard_arguments(shards.size());
  CallErrors errors;
  for (std::int64_t launch = 0; launch < space.launches(); ++launch) {
    for (std::size_t s = 0; s < shards.size(); ++s)
      shard_arguments[s] = {moved<const kernel::i32>(shards[s].nodes, space.offset(node_slots[s], launch)),
                            space.strides(node_slots[s]), shards[s].nodes.strides[leading], shards[s].shard_begin,
                            shards[s].shard_end};
    kernel::LogpFinishArguments a{};
    a.options = row_options(args.options, space, temperature, vocab_size, temperature_slot, launch);
    a.shards = shard_arguments.data();
    a.shard_count = static_cast<std::int64_t>(shards.size());
    a.full_vocab = args.full_vocab;
    a.target_ids = moved_bytes(args.target_ids, space.offset(ids, launch));
    a.id_strides = space.strides(ids);
    a.ids_per_row = 1;
    a.target_logit = moved<const float>(args.target_logit, space.offset(target_logit, launch));
    a.target_logit_strides = space.strides(target_logit);
    a.logp = moved<float>(args.logp, space.offset(logp, launch));
    a.logp_strides = space.strides(logp);
    if (lse >= 0) {
      a.lse = moved<float>(args.lse, space.offset(lse, launch));
      a.lse_strides = space.strides(lse);
    }
    if (row_state >= 0) {
      a.row_state = moved<kernel::i32>(args.row_state, space.offset(row_state, launch));
      a.row_state_strides = space.strides(row_state);
    }
    const std::int64_t rows = space.rows_per_launch();
    launch_rows(function, a, rows, 256, threads_of(args.options), launch * rows, errors);
  }
  errors.publish(args.options, args.target_ids.device);
}

} // namespace bilogp
