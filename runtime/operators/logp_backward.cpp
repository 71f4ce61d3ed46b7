// logp_backward: check arguments, choose the specialization, plan the launch.
#include <fmt/format.h>

#include "runtime/kernel_key.hpp"
#include "runtime/operators/checks.hpp"
#include "runtime/operators/gpu_call.hpp"
#include "runtime/operators/launch.hpp"

namespace bilogp {
namespace {

struct Checked {
  int leading_rank = 0;
  std::int64_t columns = 0;    // of the logits given
  std::int64_t vocab_size = 0; // that count, of all shards
  float temperature = 1;
};

void check_gradient(const LogpBackwardArgs& args) {
  const TensorView& grad = args.grad_logits;
  check::gradient(grad, args.logits, args.in_place);
  check::no_overlap("grad_logits", grad, "row_state", args.row_state);
  check::no_overlap("grad_logits", grad, "target_ids", args.target_ids);
  check::no_overlap("grad_logits", grad, "grad_logp", args.grad_logp);
}

Checked check_arguments(const LogpBackwardArgs& args) {
  Checked checked;
  check::logits("logits", args.logits);
  const int leading = checked.leading_rank = args.logits.rank - 1;
  checked.columns = args.logits.shape[leading];
  check::id_dtype("target_ids", args.target_ids);
  if (args.target_ids.rank == leading + 1)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("target_ids has {} ids per row; the backward pass is defined for one: sum the gradients of "
                            "one call per id",
                            args.target_ids.shape[leading]));
  check::row_input("target_ids", args.target_ids, args.logits, leading);
  check::dtype("row_state", args.row_state, DType::int32);
  check::shape("row_state", args.row_state, args.logits, leading, 2);
  check::last_stride_one("row_state", args.row_state);
  check::memory("row_state", args.row_state);
  check::same_device("row_state", args.row_state, args.logits);
  check::dtype("grad_logp", args.grad_logp, DType::float32);
  check::row_input("grad_logp", args.grad_logp, args.logits, leading);
  check_gradient(args);
  const std::int64_t full = args.full_vocab == -1 ? checked.columns : args.full_vocab;
  if (full < 1 || full > largest_vocab)
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("full_vocab is {}; expected 1 to {} stored columns, or -1 for a whole row", full, largest_vocab));
  if (args.shard_begin < 0 || args.shard_begin > full - checked.columns)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the shard begins at column {} and has {} columns; expected it inside [0, {})",
                            args.shard_begin, checked.columns, full));
  checked.temperature = check::options(args.options, args.logits, leading);
  checked.vocab_size = check::vocab_size(args.options, full);
  if (check::wants_validation(args.options, args.logits.device))
    check::target_ids(args.target_ids, leading, checked.vocab_size, args.options.ignore_index);
  return checked;
}

struct Slots {
  int logits, grad, ids, row_state, grad_logp, temperature = -1;
};

kernel::LogpBackwardArguments kernel_arguments(const LogpBackwardArgs& args, const Checked& checked,
                                               const RowSpace& space, const Slots& slots, std::int64_t launch) {
  kernel::LogpBackwardArguments a{};
  set_row_options(a.options, args.options, space, checked.temperature, checked.vocab_size, slots.temperature, launch);
  a.logits = moved_bytes(args.logits, space.offset(slots.logits, launch));
  a.logits_strides = space.strides(slots.logits);
  a.grad_logits = moved_bytes(args.grad_logits, space.offset(slots.grad, launch));
  a.grad_strides = space.strides(slots.grad);
  a.target_ids = moved_bytes(args.target_ids, space.offset(slots.ids, launch));
  a.id_strides = space.strides(slots.ids);
  a.row_state = moved<const kernel::i32>(args.row_state, space.offset(slots.row_state, launch));
  a.row_state_strides = space.strides(slots.row_state);
  a.grad_logp = moved<const float>(args.grad_logp, space.offset(slots.grad_logp, launch));
  a.grad_logp_strides = space.strides(slots.grad_logp);
  a.column_origin = args.shard_begin;
  a.column_begin = args.shard_begin;
  a.column_end = args.shard_begin + checked.columns;
  a.past_cache = writes_past_cache(space.rows(), checked.columns, size_of(args.logits.dtype), args.in_place) ? 1 : 0;
  return a;
}

// Few rows: blocks of columns of one row each, every column being written by one thread. Over the logits too: a
// gradient's column needs no other column, and the target's logit is read by the block that holds it.
void launch_column_blocks(cpu::KernelFunction function, const kernel::LogpBackwardArguments& whole, std::int64_t rows,
                          const cpu::Crew& crew, std::int64_t row_offset, CallErrors& errors) {
  constexpr std::int64_t block_columns = 16384;
  const std::int64_t columns = whole.column_end - whole.column_begin;
  const std::int64_t blocks = (columns + block_columns - 1) / block_columns;
  const auto piece = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      kernel::LogpBackwardArguments a = whole;
      std::int64_t words[4] = {};
      a.options.errors = reinterpret_cast<kernel::i64*>(words);
      a.column_begin = whole.column_begin + i / rows * block_columns;
      a.column_end = std::min<std::int64_t>(a.column_begin + block_columns, whole.column_end);
      function(&a, i % rows, i % rows + 1);
      errors.add(words, row_offset);
    }
  };
  cpu::for_ranges(blocks * rows, 1, crew, piece);
}

void backward_on_gpu(const GpuCall& call, const LogpBackwardArgs& args, const Checked& checked, const RowSpace& space,
                     const Slots& slots) {
  call.check_tensors({{"logits", &args.logits},
                      {"target_ids", &args.target_ids},
                      {"row_state", &args.row_state},
                      {"grad_logp", &args.grad_logp},
                      {"grad_logits", &args.grad_logits}});
  call.check_target_ids(args.target_ids, checked.leading_rank, checked.vocab_size);
  const Specialization spec{Operator::logp_backward, args.logits.dtype, args.target_ids.dtype, checked.vocab_size,
                            args.options.numerics};
  const std::int64_t element_bytes = size_of(args.logits.dtype);
  for (std::int64_t launch = 0; launch < space.launches(); ++launch) {
    kernel::LogpBackwardArguments arguments = kernel_arguments(args, checked, space, slots, launch);
    cuda::LaunchShape shape;
    shape.columns = shape.stored_columns = checked.columns;
    shape.vocab_size = checked.vocab_size;
    shape.in_place = args.in_place;
    shape.alignment = std::min(row_alignment(arguments.logits, arguments.logits_strides, element_bytes),
                               row_alignment(arguments.grad_logits, arguments.grad_strides, element_bytes));
    call.launch(spec, shape, arguments, space, launch);
  }
}

} // namespace

void Runtime::logp_backward(const LogpBackwardArgs& args) {
  const Checked checked = check_arguments(args);
  RowSpace space(args.logits, checked.leading_rank);
  if (space.rows() == 0) return;
  Slots slots{space.add(args.logits), space.add(args.grad_logits), space.add(args.target_ids),
              space.add(args.row_state), space.add(args.grad_logp)};
  if (args.options.temperature_per_row.present()) slots.temperature = space.add(args.options.temperature_per_row);
  space.collapse();
  if (GpuCall::is_meant(args.logits.device))
    return backward_on_gpu(GpuCall(*this, args.logits.device, args.options, args.stream), args, checked, space, slots);

  Runtime& runtime = Binding::launchable(*this, args.logits.device);
  const Specialization spec{Operator::logp_backward, args.logits.dtype, args.target_ids.dtype, checked.vocab_size};
  const cpu::KernelFunction function = Binding::cpu_function(runtime, spec);
  const cpu::Crew crew = crew_of(args.options);
  const std::int64_t bytes_per_row = 2 * checked.columns * size_of(args.logits.dtype);
  CallErrors errors;
  for (std::int64_t launch = 0; launch < space.launches(); ++launch) {
    kernel::LogpBackwardArguments arguments = kernel_arguments(args, checked, space, slots, launch);
    const std::int64_t rows = space.rows_per_launch();
    if (crew.threads > 1 && rows < crew.threads && bytes_per_row >= smallest_parallel_bytes)
      launch_column_blocks(function, arguments, rows, crew, launch * rows, errors);
    else
      launch_rows(function, arguments, rows, bytes_per_row, crew, launch * rows, errors);
  }
  errors.publish(args.options);
}

} // namespace bilogp
