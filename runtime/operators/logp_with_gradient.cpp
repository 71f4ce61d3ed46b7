// logp_with_gradient: scores and gradients of a known upstream gradient from one pass over the logits.
//
// On a CPU: forward and backward, row by row, so that the second finds the row in the cache.
#include <optional>

#include <fmt/format.h>

#include "runtime/operators/borrowed.hpp"
#include "runtime/operators/checks.hpp"
#include "runtime/operators/gpu_call.hpp"
#include "runtime/operators/launch.hpp"
#include "runtime/operators/split_rows.hpp"

namespace bilogp {
namespace {

struct Checked {
  int leading_rank = 0;
  std::int64_t columns = 0;    // stored
  std::int64_t vocab_size = 0; // that count
  float temperature = 1;
};

void check_output(std::string_view name, const TensorView& output, const LogpGradientArgs& args) {
  check::memory(name, output);
  check::same_device(name, output, args.logits);
  check::distinct_elements(name, output);
  for (const auto& [other_name, other] :
       {std::pair{"logits", &args.logits}, std::pair{"target_ids", &args.target_ids},
        std::pair{"grad_logp", &args.grad_logp}, std::pair{"grad_logits", &args.grad_logits}})
    check::no_overlap(name, output, other_name, *other);
}

void check_outputs(const LogpGradientArgs& args, int leading) {
  check::gradient(args.grad_logits, args.logits, args.in_place);
  check::no_overlap("grad_logits", args.grad_logits, "target_ids", args.target_ids);
  check::no_overlap("grad_logits", args.grad_logits, "grad_logp", args.grad_logp);
  check::dtype("logp", args.logp, DType::float32);
  check::shape("logp", args.logp, args.logits, leading);
  check_output("logp", args.logp, args);
  check::optional_results(args, leading, check_output);
}

Checked check_arguments(const LogpGradientArgs& args) {
  Checked checked;
  check::logits("logits", args.logits);
  const int leading = checked.leading_rank = args.logits.rank - 1;
  checked.columns = args.logits.shape[leading];
  check::id_dtype("target_ids", args.target_ids);
  if (args.target_ids.rank == leading + 1)
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("target_ids has {} ids per row; the gradient is defined for one: call logp for all of them, "
                    "then logp_backward per id",
                    args.target_ids.shape[leading]));
  check::row_input("target_ids", args.target_ids, args.logits, leading);
  check::dtype("grad_logp", args.grad_logp, DType::float32);
  check::row_input("grad_logp", args.grad_logp, args.logits, leading);
  check_outputs(args, leading);
  checked.temperature = check::options(args.options, args.logits, leading);
  checked.vocab_size = check::vocab_size(args.options, checked.columns);
  if (check::wants_validation(args.options, args.logits.device))
    check::target_ids(args.target_ids, leading, checked.vocab_size, args.options.ignore_index);
  return checked;
}

struct Slots {
  int logits, grad, ids, grad_logp, logp, lse = -1, row_state = -1, temperature = -1;
};

kernel::LogpGradientArguments kernel_arguments(const LogpGradientArgs& args, const Checked& checked,
                                               const RowSpace& space, const Slots& slots, std::int64_t launch) {
  kernel::LogpGradientArguments a{};
  set_row_options(a.options, args.options, space, checked.temperature, checked.vocab_size, slots.temperature, launch);
  a.logits = moved_bytes(args.logits, space.offset(slots.logits, launch));
  a.logits_strides = space.strides(slots.logits);
  a.grad_logits = moved_bytes(args.grad_logits, space.offset(slots.grad, launch));
  a.grad_strides = space.strides(slots.grad);
  a.target_ids = moved_bytes(args.target_ids, space.offset(slots.ids, launch));
  a.id_strides = space.strides(slots.ids);
  a.ids_per_row = 1;
  a.grad_logp = moved<const float>(args.grad_logp, space.offset(slots.grad_logp, launch));
  a.grad_logp_strides = space.strides(slots.grad_logp);
  set_results(a, args, slots, space, launch);
  a.columns = checked.columns;
  return a;
}

kernel::LogpForwardArguments forward_of(const kernel::LogpGradientArguments& a) {
  kernel::LogpForwardArguments f{};
  f.options = a.options;
  f.logits = a.logits;
  f.logits_strides = a.logits_strides;
  f.target_ids = a.target_ids;
  f.id_strides = a.id_strides;
  f.ids_per_row = 1;
  f.logp = a.logp;
  f.logp_strides = a.logp_strides;
  f.lse = a.lse;
  f.lse_strides = a.lse_strides;
  f.row_state = a.row_state;
  f.row_state_strides = a.row_state_strides;
  return f;
}

kernel::LogpBackwardArguments backward_of(const kernel::LogpGradientArguments& a) {
  kernel::LogpBackwardArguments b{};
  b.options = a.options;
  b.options.errors = nullptr; // the forward has counted them
  b.logits = a.logits;
  b.logits_strides = a.logits_strides;
  b.grad_logits = a.grad_logits;
  b.grad_strides = a.grad_strides;
  b.target_ids = a.target_ids;
  b.id_strides = a.id_strides;
  b.row_state = a.row_state;
  b.row_state_strides = a.row_state_strides;
  b.grad_logp = a.grad_logp;
  b.grad_logp_strides = a.grad_logp_strides;
  b.column_end = a.columns;
  return b;
}

// Few rows: each pass cuts them among the blocks of the whole device.
void two_launches(const GpuCall& call, const Specialization& spec, cuda::LaunchShape& shape,
                  kernel::LogpGradientArguments& arguments, const RowSpace& space, std::int64_t launch) {
  std::optional<cuda::ScratchLease> states;
  if (arguments.row_state == nullptr) {
    call.take_scratch(states);
    arguments.row_state = reinterpret_cast<kernel::i32*>(states->scratch().row_states);
    arguments.row_state_strides = {2 * space.inner_rows(), 2};
  }
  Specialization pass = spec;
  pass.op = Operator::logp_forward;
  kernel::LogpForwardArguments forward = forward_of(arguments);
  call.launch(pass, shape, forward, space, launch);
  pass.op = Operator::logp_backward;
  kernel::LogpBackwardArguments backward = backward_of(arguments);
  shape.columns = shape.stored_columns;
  call.launch(pass, shape, backward, space, launch, nullptr, BadIds::counted_before);
}

void with_gradient_on_gpu(const GpuCall& call, const LogpGradientArgs& args, const Checked& checked,
                          const RowSpace& space, const Slots& slots) {
  call.check_tensors({{"logits", &args.logits},
                      {"target_ids", &args.target_ids},
                      {"grad_logp", &args.grad_logp},
                      {"logp", &args.logp},
                      {"lse", &args.lse},
                      {"row_state", &args.row_state},
                      {"grad_logits", &args.grad_logits}});
  call.check_target_ids(args.target_ids, checked.leading_rank, checked.vocab_size);
  const Specialization spec{Operator::logp_with_gradient, args.logits.dtype, args.target_ids.dtype, checked.vocab_size,
                            args.options.numerics};
  const std::int64_t element_bytes = size_of(args.logits.dtype);
  for (std::int64_t launch = 0; launch < space.launches(); ++launch) {
    kernel::LogpGradientArguments arguments = kernel_arguments(args, checked, space, slots, launch);
    cuda::LaunchShape shape;
    shape.columns = shape.vocab_size = checked.vocab_size;
    shape.stored_columns = checked.columns;
    shape.in_place = args.in_place;
    shape.alignment = std::min(row_alignment(arguments.logits, arguments.logits_strides, element_bytes),
                               row_alignment(arguments.grad_logits, arguments.grad_strides, element_bytes));
    if (call.splits_passes(GpuCall::complete(shape, spec, arguments, space)))
      two_launches(call, spec, shape, arguments, space, launch);
    else
      call.launch(spec, shape, arguments, space, launch);
  }
}

// Both kernels behind the face of one, for launch_rows.
struct RowByRow {
  cpu::KernelFunction forward, backward;
  bool past_cache; // how gradients are written

  void operator()(const kernel::LogpGradientArguments* arguments, std::int64_t begin, std::int64_t end) const {
    kernel::LogpForwardArguments f = forward_of(*arguments);
    kernel::i32 state[2] = {};
    if (f.row_state == nullptr) {
      f.row_state = state;
      f.row_state_strides = {0, 0};
    }
    kernel::LogpBackwardArguments b = backward_of(*arguments);
    b.row_state = f.row_state;
    b.row_state_strides = f.row_state_strides;
    b.past_cache = past_cache ? 1 : 0;
    for (std::int64_t row = begin; row < end; ++row) {
      forward(&f, row, row + 1);
      backward(&b, row, row + 1);
    }
  }
};

// Few long rows: each operator cuts them among the threads by itself.
void one_after_the_other(Runtime& runtime, const LogpGradientArgs& args, int leading) {
  Borrowed<std::vector<std::int32_t>> states;
  LogpArgs forward;
  forward.logits = args.logits;
  forward.target_ids = args.target_ids;
  forward.logp = args.logp;
  forward.lse = args.lse;
  forward.row_state = args.row_state;
  forward.options = args.options;
  if (!args.row_state.present()) {
    TensorView& state = forward.row_state;
    state.dtype = DType::int32;
    state.rank = leading + 1;
    std::int64_t stride = 2;
    for (int d = leading - 1; d >= 0; --d) {
      state.shape[d] = args.logits.shape[d];
      state.strides[d] = stride;
      stride *= state.shape[d];
    }
    state.shape[leading] = 2;
    state.strides[leading] = 1;
    states->resize(static_cast<std::size_t>(stride));
    state.data = states->data();
  }
  runtime.logp(forward);
  LogpBackwardArgs backward;
  backward.logits = args.logits;
  backward.target_ids = args.target_ids;
  backward.row_state = forward.row_state;
  backward.grad_logp = args.grad_logp;
  backward.grad_logits = args.grad_logits;
  backward.in_place = args.in_place;
  backward.options = args.options;
  backward.options.bad_ids_counted = true;
  runtime.logp_backward(backward);
}

} // namespace

void Runtime::logp_with_gradient(const LogpGradientArgs& args) {
  const Checked checked = check_arguments(args);
  RowSpace space(args.logits, checked.leading_rank);
  if (space.rows() == 0) return;
  Slots slots{space.add(args.logits), space.add(args.grad_logits), space.add(args.target_ids),
              space.add(args.grad_logp), space.add(args.logp)};
  if (args.lse.present()) slots.lse = space.add(args.lse);
  if (args.row_state.present()) slots.row_state = space.add(args.row_state);
  if (args.options.temperature_per_row.present()) slots.temperature = space.add(args.options.temperature_per_row);
  space.collapse();
  if (GpuCall::is_meant(args.logits.device))
    return with_gradient_on_gpu(GpuCall(*this, args.logits.device, args.options, args.stream), args, checked, space,
                                slots);

  Runtime& runtime = Binding::launchable(*this, args.logits.device);
  const cpu::Crew crew = crew_of(args.options);
  const std::int64_t bytes_per_row = checked.columns * size_of(args.logits.dtype);
  if (worth_splitting(space.rows(), bytes_per_row, crew.threads, 1))
    return one_after_the_other(runtime, args, checked.leading_rank);
  const DType logits = args.logits.dtype;
  const DType ids = args.target_ids.dtype;
  const RowByRow kernels{Binding::cpu_function(runtime, {Operator::logp_forward, logits, ids, checked.vocab_size}),
                         Binding::cpu_function(runtime, {Operator::logp_backward, logits, ids, checked.vocab_size}),
                         writes_past_cache(space.rows(), checked.columns, size_of(logits), args.in_place)};
  CallErrors errors;
  for (std::int64_t launch = 0; launch < space.launches(); ++launch) {
    kernel::LogpGradientArguments arguments = kernel_arguments(args, checked, space, slots, launch);
    const std::int64_t rows = space.rows_per_launch();
    launch_rows(kernels, arguments, rows, 2 * bytes_per_row, crew, launch * rows, errors,
                leaf_table_of(runtime, logits, rows * checked.vocab_size, crew.threads));
  }
  errors.publish(args.options);
}

} // namespace bilogp
