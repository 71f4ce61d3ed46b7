// logp: check arguments, choose the specialization, plan the launch.
#include "runtime/operators/checks.hpp"
#include "runtime/operators/gpu_call.hpp"
#include "runtime/operators/launch.hpp"
#include "runtime/operators/split_rows.hpp"

namespace bilogp {
namespace {

struct Checked {
  int leading_rank = 0;
  std::int64_t vocab_size = 0;
  std::int64_t ids_per_row = 1;
  float temperature = 1;
};

void check_output(std::string_view name, const TensorView& output, const LogpArgs& args) {
  check::memory(name, output);
  check::same_device(name, output, args.logits);
  check::distinct_elements(name, output);
  check::no_overlap(name, output, "logits", args.logits);
  check::no_overlap(name, output, "target_ids", args.target_ids);
}

Checked check_arguments(const LogpArgs& args) {
  Checked checked;
  check::logits("logits", args.logits);
  const int leading = checked.leading_rank = args.logits.rank - 1;
  check::id_dtype("target_ids", args.target_ids);
  const bool many = args.target_ids.rank == leading + 1;
  checked.ids_per_row = many ? args.target_ids.shape[leading] : 1;
  const std::int64_t tail = many ? checked.ids_per_row : -1;
  check::row_input("target_ids", args.target_ids, args.logits, leading, tail);
  check::dtype("logp", args.logp, DType::float32);
  check::shape("logp", args.logp, args.logits, leading, tail);
  check_output("logp", args.logp, args);
  check::optional_results(args, leading, check_output);
  checked.temperature = check::options(args.options, args.logits, leading);
  checked.vocab_size = check::vocab_size(args.options, args.logits.shape[leading]);
  if (check::wants_validation(args.options, args.logits.device))
    check::target_ids(args.target_ids, leading, checked.vocab_size, args.options.ignore_index);
  return checked;
}

struct Slots {
  int logits, ids, logp, lse = -1, row_state = -1, temperature = -1;
};

kernel::LogpForwardArguments kernel_arguments(const LogpArgs& args, const Checked& checked, const RowSpace& space,
                                              const Slots& slots, std::int64_t launch) {
  kernel::LogpForwardArguments a{};
  set_row_options(a.options, args.options, space, checked.temperature, checked.vocab_size, slots.temperature, launch);
  a.logits = moved_bytes(args.logits, space.offset(slots.logits, launch));
  a.logits_strides = space.strides(slots.logits);
  a.target_ids = moved_bytes(args.target_ids, space.offset(slots.ids, launch));
  a.id_strides = space.strides(slots.ids);
  a.ids_per_row = checked.ids_per_row;
  const int last = checked.leading_rank;
  a.id_stride_k = args.target_ids.rank > last ? args.target_ids.strides[last] : 0;
  a.logp_stride_k = args.logp.rank > last ? args.logp.strides[last] : 0;
  set_results(a, args, slots, space, launch);
  return a;
}

void logp_on_gpu(const GpuCall& call, const LogpArgs& args, const Checked& checked, const RowSpace& space,
                 const Slots& slots) {
  call.check_tensors({{"logits", &args.logits},
                      {"target_ids", &args.target_ids},
                      {"logp", &args.logp},
                      {"lse", &args.lse},
                      {"row_state", &args.row_state}});
  call.check_target_ids(args.target_ids, checked.leading_rank, checked.vocab_size);
  const Specialization spec{Operator::logp_forward, args.logits.dtype, args.target_ids.dtype, checked.vocab_size,
                            args.options.numerics};
  for (std::int64_t launch = 0; launch < space.launches(); ++launch) {
    kernel::LogpForwardArguments arguments = kernel_arguments(args, checked, space, slots, launch);
    cuda::LaunchShape shape;
    shape.columns = shape.vocab_size = checked.vocab_size;
    shape.stored_columns = args.logits.shape[checked.leading_rank];
    shape.ids_per_row = checked.ids_per_row;
    shape.alignment = row_alignment(arguments.logits, arguments.logits_strides, size_of(args.logits.dtype));
    call.launch(spec, shape, arguments, space, launch);
  }
}

} // namespace

void Runtime::logp(const LogpArgs& args) {
  const Checked checked = check_arguments(args);
  RowSpace space(args.logits, checked.leading_rank);
  if (space.rows() == 0) return;
  Slots slots{space.add(args.logits), space.add(args.target_ids), space.add(args.logp)};
  if (args.lse.present()) slots.lse = space.add(args.lse);
  if (args.row_state.present()) slots.row_state = space.add(args.row_state);
  if (args.options.temperature_per_row.present()) slots.temperature = space.add(args.options.temperature_per_row);
  space.collapse();
  if (GpuCall::is_meant(args.logits.device))
    return logp_on_gpu(GpuCall(*this, args.logits.device, args.options, args.stream), args, checked, space, slots);

  Runtime& runtime = Binding::launchable(*this, args.logits.device);
  const Specialization spec{Operator::logp_forward, args.logits.dtype, args.target_ids.dtype, checked.vocab_size};
  const cpu::Crew crew = crew_of(args.options);
  const std::int64_t bytes_per_row = checked.vocab_size * size_of(args.logits.dtype);
  CallErrors errors;
  for (std::int64_t launch = 0; launch < space.launches(); ++launch) {
    kernel::LogpForwardArguments arguments = kernel_arguments(args, checked, space, slots, launch);
    const std::int64_t rows = space.rows_per_launch();
    if (worth_splitting(rows, bytes_per_row, crew.threads, checked.ids_per_row))
      logp_by_column_blocks(runtime, spec, arguments, rows, crew, launch * rows, errors);
    else
      launch_rows(Binding::cpu_function(runtime, spec), arguments, rows, bytes_per_row, crew, launch * rows, errors,
                  leaf_table_of(runtime, spec.logits_dtype, rows * checked.vocab_size, crew.threads));
  }
  errors.publish(args.options);
}

} // namespace bilogp
