// Checks of arguments, shared by the operators. Each throws Error with one sentence that names the argument, what was
// given and what was expected; all of them run before anything is launched or written.
#pragma once

#include <cstdint>
#include <string_view>

#include "bilogp/runtime.hpp"

namespace bilogp::check {

// A [..., V] tensor of logits: rank 2 or more, a floating dtype, vocabulary stride 1, V from 1 to 2^31, memory there.
void logits(std::string_view name, const TensorView& tensor);

// dtype as given.
void dtype(std::string_view name, const TensorView& tensor, DType expected);
void id_dtype(std::string_view name, const TensorView& tensor);

// Shape = the first `leading_rank` extents of `like`, then `tail` (none when negative).
void shape(std::string_view name, const TensorView& tensor, const TensorView& like, int leading_rank,
           std::int64_t tail = -1);

// Rank, extents and strides are sane, and a null pointer is only for tensors without elements.
void memory(std::string_view name, const TensorView& tensor);
// An input with the rows of `like`: its shape, memory and device.
void row_input(std::string_view name, const TensorView& tensor, const TensorView& like, int leading_rank,
               std::int64_t tail = -1);
// Every element of an output has its own place: no stride of 0 where the extent is more than 1.
void distinct_elements(std::string_view name, const TensorView& tensor);
void last_stride_one(std::string_view name, const TensorView& tensor);
void same_device(std::string_view name, const TensorView& tensor, const TensorView& reference);
// The two do not share a byte.
void no_overlap(std::string_view name, const TensorView& tensor, std::string_view other_name, const TensorView& other);

// grad_logits: [..., V] as the logits, memory of its own or, with `in_place`, that of the logits.
void gradient(const TensorView& grad, const TensorView& logits, bool in_place);

// Temperature, its tensor, threads, numerics, plan. Returns the temperature as the kernels take it.
float options(const LogpOptions& options, const TensorView& rows, int leading_rank);

// options.vocab_size resolved against the stored columns.
std::int64_t vocab_size(const LogpOptions& options, std::int64_t stored);

// Every id is in [0, vocab_size) or ignore_index; else Error(out_of_range) naming row and id.
void target_ids(const TensorView& ids, int leading_rank, std::int64_t vocab_size, std::int64_t ignore_index);
// Whether they are checked before the launch by reading them in place: on a CPU, unless validate is off. (On a GPU the
// call does it, see gpu_call.hpp.)
bool wants_validation(const LogpOptions& options, const Device& device);

// lse and row_state, where a call over logits wants them; `check_output(name, tensor, args)` has the operator's own
// rest.
template<class Args, class CheckOutput>
void optional_results(const Args& args, int leading, const CheckOutput& check_output) {
  if (args.lse.present()) {
    dtype("lse", args.lse, DType::float32);
    shape("lse", args.lse, args.logits, leading);
    check_output("lse", args.lse, args);
  }
  if (args.row_state.present()) {
    dtype("row_state", args.row_state, DType::int32);
    shape("row_state", args.row_state, args.logits, leading, 2);
    last_stride_one("row_state", args.row_state);
    check_output("row_state", args.row_state, args);
  }
}

} // namespace bilogp::check
