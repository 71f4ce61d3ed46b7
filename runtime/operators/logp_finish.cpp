// logp_finish: joins the nodes of all shards of a vocabulary, then logp, lse and the row state.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "runtime/operators/checks.hpp"
#include "runtime/operators/gpu_call.hpp"
#include "runtime/operators/launch.hpp"
#include "runtime/operators/shards.hpp"

namespace bilogp {
namespace {

struct Scratch { // of the calling thread, grown and kept: a call allocates nothing after the first
  std::vector<const ShardNodes*> shards; // in column order
  std::vector<int> slots;                // of their nodes in the row space
  std::vector<kernel::ShardNodesArgument> arguments;
};

Scratch& scratch_of_thread() {
  static thread_local Scratch scratch;
  return scratch;
}

void check_shard_nodes(const ShardNodes& shard, const LogpFinishArgs& args, int leading) {
  check_nodes(shard.nodes, args.target_ids, leading, node_count(shard.shard_begin, shard.shard_end, args.full_vocab));
  check::memory("nodes", shard.nodes);
  check::same_device("nodes", shard.nodes, args.target_ids);
}

// Orders the shards by column; throws unless they cover [0, full_vocab) once.
void order_shards(const LogpFinishArgs& args, int leading, std::vector<const ShardNodes*>& shards) {
  if (args.shards.empty())
    throw Error(ErrorKind::invalid_argument, "logp_finish was given no shards; expected the nodes of all of them");
  shards.clear();
  for (const ShardNodes& shard : args.shards) shards.push_back(&shard);
  std::ranges::sort(shards, {}, &ShardNodes::shard_begin);
  std::int64_t covered = 0;
  for (const ShardNodes* shard : shards) {
    check_shard(shard->shard_begin, shard->shard_end, args.full_vocab);
    if (shard->shard_begin != covered)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("a shard begins at column {}, but the shards before it end at {}; expected shards that "
                              "cover [0, {}) once",
                              shard->shard_begin, covered, args.full_vocab));
    covered = shard->shard_end;
    try {
      check_shard_nodes(*shard, args, leading);
    } catch (const Error& error) {
      throw Error(error.kind(),
                  fmt::format("the shard [{}, {}): {}", shard->shard_begin, shard->shard_end, error.what()));
    }
  }
  if (covered != args.full_vocab)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the shards end at column {}; expected them to cover [0, {})", covered, args.full_vocab));
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

struct Checked {
  int leading_rank = 0;
  std::int64_t vocab_size = 0;
  float temperature = 1;
};

Checked check_arguments(const LogpFinishArgs& args, Scratch& scratch) {
  Checked checked;
  check::id_dtype("target_ids", args.target_ids);
  check::memory("target_ids", args.target_ids);
  const int leading = checked.leading_rank = args.target_ids.rank;
  if (leading < 1) throw Error(ErrorKind::invalid_argument, "target_ids has no dimension; expected [...]");
  order_shards(args, leading, scratch.shards);
  check::dtype("target_logit", args.target_logit, DType::float32);
  check::row_input("target_logit", args.target_logit, args.target_ids, leading);
  check_output("logp", args.logp, args, leading, DType::float32, -1);
  if (args.lse.present()) check_output("lse", args.lse, args, leading, DType::float32, -1);
  if (args.row_state.present()) {
    check_output("row_state", args.row_state, args, leading, DType::int32, 2);
    check::last_stride_one("row_state", args.row_state);
  }
  checked.temperature = check::options(args.options, args.target_ids, leading);
  checked.vocab_size = check::vocab_size(args.options, args.full_vocab);
  if (check::wants_validation(args.options, args.target_ids.device))
    check::target_ids(args.target_ids, leading, checked.vocab_size, args.options.ignore_index);
  return checked;
}

struct Slots {
  int ids, target_logit, logp, lse = -1, row_state = -1, temperature = -1;
};

kernel::LogpFinishArguments kernel_arguments(const LogpFinishArgs& args, const Checked& checked, const RowSpace& space,
                                             const Slots& slots, std::int64_t launch) {
  kernel::LogpFinishArguments a{};
  set_row_options(a.options, args.options, space, checked.temperature, checked.vocab_size, slots.temperature, launch);
  a.shard_count = static_cast<std::int64_t>(args.shards.size());
  a.full_vocab = args.full_vocab;
  a.target_ids = moved_bytes(args.target_ids, space.offset(slots.ids, launch));
  a.id_strides = space.strides(slots.ids);
  a.ids_per_row = 1;
  a.target_logit = moved<const float>(args.target_logit, space.offset(slots.target_logit, launch));
  a.target_logit_strides = space.strides(slots.target_logit);
  set_results(a, args, slots, space, launch);
  return a;
}

kernel::ShardNodesArgument shard_argument(const Scratch& scratch, const RowSpace& space, int node_dimension,
                                          std::size_t shard, std::int64_t launch) {
  const ShardNodes& nodes = *scratch.shards[shard];
  const int slot = scratch.slots[shard];
  return {moved<const kernel::i32>(nodes.nodes, space.offset(slot, launch)), space.strides(slot),
          nodes.nodes.strides[node_dimension], nodes.shard_begin, nodes.shard_end};
}

void finish_on_gpu(const GpuCall& call, const LogpFinishArgs& args, const Checked& checked, const RowSpace& space,
                   const Slots& slots, const Scratch& scratch) {
  if (args.shards.size() > kernel::largest_shard_count)
    throw Error(ErrorKind::unsupported,
                fmt::format("logp_finish was given {} shards; on a GPU it joins at most {} in one call",
                            args.shards.size(), +kernel::largest_shard_count));
  call.check_tensors({{"target_ids", &args.target_ids},
                      {"target_logit", &args.target_logit},
                      {"logp", &args.logp},
                      {"lse", &args.lse},
                      {"row_state", &args.row_state}});
  for (const ShardNodes& shard : args.shards) call.check_tensors({{"nodes", &shard.nodes}});
  call.check_target_ids(args.target_ids, checked.leading_rank, checked.vocab_size);
  const Specialization spec{Operator::logp_finish, DType::float32, args.target_ids.dtype, 0, args.options.numerics};
  for (std::int64_t launch = 0; launch < space.launches(); ++launch) {
    kernel::LogpFinishArguments arguments = kernel_arguments(args, checked, space, slots, launch);
    kernel::GpuShards shards;
    for (std::size_t s = 0; s < scratch.shards.size(); ++s)
      shards.shards[s] = shard_argument(scratch, space, checked.leading_rank, s, launch);
    cuda::LaunchShape shape;
    shape.columns = shape.stored_columns = static_cast<std::int64_t>(args.shards.size());
    shape.vocab_size = checked.vocab_size;
    call.launch(spec, shape, arguments, space, launch, &shards);
  }
}

} // namespace

void Runtime::logp_finish(const LogpFinishArgs& args) {
  Scratch& scratch = scratch_of_thread();
  const Checked checked = check_arguments(args, scratch);
  RowSpace space(args.target_ids, checked.leading_rank);
  if (space.rows() == 0) return;
  Slots slots{space.add(args.target_ids), space.add(args.target_logit), space.add(args.logp)};
  if (args.lse.present()) slots.lse = space.add(args.lse);
  if (args.row_state.present()) slots.row_state = space.add(args.row_state);
  if (args.options.temperature_per_row.present()) slots.temperature = space.add(args.options.temperature_per_row);
  scratch.slots.clear();
  for (const ShardNodes* shard : scratch.shards) scratch.slots.push_back(space.add(shard->nodes));
  space.collapse();
  if (GpuCall::is_meant(args.target_ids.device))
    return finish_on_gpu(GpuCall(*this, args.target_ids.device, args.options, args.stream), args, checked, space, slots,
                         scratch);

  Runtime& runtime = Binding::launchable(*this, args.target_ids.device);
  const Specialization spec{Operator::logp_finish, DType::float32, args.target_ids.dtype};
  const cpu::KernelFunction function = Binding::cpu_function(runtime, spec);
  std::vector<kernel::ShardNodesArgument>& shards = scratch.arguments;
  shards.resize(scratch.shards.size());
  CallErrors errors;
  for (std::int64_t launch = 0; launch < space.launches(); ++launch) {
    for (std::size_t s = 0; s < shards.size(); ++s)
      shards[s] = shard_argument(scratch, space, checked.leading_rank, s, launch);
    kernel::LogpFinishArguments a = kernel_arguments(args, checked, space, slots, launch);
    a.shards = shards.data();
    const std::int64_t rows = space.rows_per_launch();
    launch_rows(function, a, rows, 256, crew_of(args.options), launch * rows, errors);
  }
  errors.publish(args.options);
}

} // namespace bilogp
