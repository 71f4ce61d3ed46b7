// logp_partial: the nodes that one shard of the vocabulary contributes to each row.
#include <fmt/format.h>

#include "runtime/operators/checks.hpp"
#include "runtime/operators/gpu_call.hpp"
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
  check_nodes(nodes, args.logits, leading, node_count(args.shard_begin, args.shard_end, args.full_vocab));
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

struct Slots {
  int logits, ids, nodes, target_logit, temperature = -1;
};

kernel::LogpPartialArguments kernel_arguments(const LogpPartialArgs& args, const Checked& checked,
                                              const RowSpace& space, const Slots& slots, std::int64_t launch) {
  kernel::LogpPartialArguments a{};
  set_row_options(a.options, args.options, space, checked.temperature, checked.vocab_size, slots.temperature, launch);
  a.logits = moved_bytes(args.logits, space.offset(slots.logits, launch));
  a.logits_strides = space.strides(slots.logits);
  a.target_ids = moved_bytes(args.target_ids, space.offset(slots.ids, launch));
  a.id_strides = space.strides(slots.ids);
  a.nodes = moved<kernel::i32>(args.nodes, space.offset(slots.nodes, launch));
  a.node_strides = space.strides(slots.nodes);
  a.node_stride_k = args.nodes.strides[checked.leading_rank];
  a.target_logit = moved<float>(args.target_logit, space.offset(slots.target_logit, launch));
  a.target_logit_strides = space.strides(slots.target_logit);
  a.shard_begin = args.shard_begin;
  a.shard_end = args.shard_end;
  a.full_vocab = args.full_vocab;
  return a;
}

void partial_on_gpu(const GpuCall& call, const LogpPartialArgs& args, const Checked& checked, const RowSpace& space,
                    const Slots& slots) {
  call.check_tensors({{"logits", &args.logits},
                      {"target_ids", &args.target_ids},
                      {"nodes", &args.nodes},
                      {"target_logit", &args.target_logit}});
  call.check_target_ids(args.target_ids, checked.leading_rank, checked.vocab_size);
  const Specialization spec{Operator::logp_partial, args.logits.dtype, args.target_ids.dtype, 0, args.options.numerics};
  for (std::int64_t launch = 0; launch < space.launches(); ++launch) {
    kernel::LogpPartialArguments arguments = kernel_arguments(args, checked, space, slots, launch);
    cuda::LaunchShape shape;
    shape.columns = shape.stored_columns = args.shard_end - args.shard_begin;
    shape.vocab_size = checked.vocab_size;
    shape.alignment = row_alignment(arguments.logits, arguments.logits_strides, size_of(args.logits.dtype));
    call.launch(spec, shape, arguments, space, launch);
  }
}

} // namespace

void Runtime::logp_partial(const LogpPartialArgs& args) {
  const Checked checked = check_arguments(args);
  const int leading = checked.leading_rank;
  RowSpace space(args.logits, leading);
  if (space.rows() == 0) return;
  Slots slots{space.add(args.logits), space.add(args.target_ids), space.add(args.nodes), space.add(args.target_logit)};
  if (args.options.temperature_per_row.present()) slots.temperature = space.add(args.options.temperature_per_row);
  space.collapse();
  if (GpuCall::is_meant(args.logits.device))
    return partial_on_gpu(GpuCall(*this, args.logits.device, args.options, args.stream), args, checked, space, slots);

  Runtime& runtime = Binding::launchable(*this, args.logits.device);
  const Specialization spec{Operator::logp_partial, args.logits.dtype, args.target_ids.dtype};
  const cpu::KernelFunction function = Binding::cpu_function(runtime, spec);
  CallErrors errors; // bad ids are counted once, by logp_finish
  for (std::int64_t launch = 0; launch < space.launches(); ++launch) {
    kernel::LogpPartialArguments a = kernel_arguments(args, checked, space, slots, launch);
    const std::int64_t rows = space.rows_per_launch();
    const std::int64_t columns = args.logits.shape[leading];
    const cpu::Crew crew = crew_of(args.options);
    launch_rows(function, a, rows, columns * size_of(args.logits.dtype), crew, 0, errors,
                leaf_table_of(runtime, args.logits.dtype, rows * columns, crew.threads));
  }
}

} // namespace bilogp
