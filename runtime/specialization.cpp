#include "bilogp/specialization.hpp"

#include <fmt/format.h>

#include "bilogp/error.hpp"

#include "runtime/kernel_key.hpp"

namespace bilogp {
inline namespace v1 {

std::string_view to_string(Operator op) noexcept {
  switch (op) {
  case Operator::logp_forward:
    return "logp_forward";
  case Operator::logp_backward:
    return "logp_backward";
  case Operator::logp_partial:
    return "logp_partial";
  case Operator::logp_finish:
    return "logp_finish";
  case Operator::logp_with_gradient:
    return "logp_with_gradient";
  }
  return "unknown";
}

std::string_view to_string(Numerics numerics) noexcept {
  return numerics == Numerics::portable ? "portable" : "native";
}

std::string describe(const Specialization& spec) {
  const std::string vocab = spec.vocab_size > 0 ? fmt::format("{}", spec.vocab_size) : "any";
  const std::string plan = spec.variant > 0 ? fmt::format(" plan={}", spec.variant) : "";
  return fmt::format("{} {} {} vocab={} {}{}", to_string(spec.op), to_string(spec.logits_dtype),
                     to_string(spec.id_dtype), vocab, to_string(spec.numerics), plan);
}

} // namespace v1

void check_specialization(const Specialization& spec) {
  const bool is_float = spec.logits_dtype == DType::float32 || spec.logits_dtype == DType::float16 ||
                        spec.logits_dtype == DType::bfloat16;
  if (!is_float)
    throw Error(ErrorKind::invalid_argument, fmt::format("a specialization's logits_dtype is {}; expected float32, "
                                                         "float16 or bfloat16",
                                                         to_string(spec.logits_dtype)));
  if (spec.id_dtype != DType::int32 && spec.id_dtype != DType::int64)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a specialization's id_dtype is {}; expected int32 or int64", to_string(spec.id_dtype)));
  if (spec.vocab_size < 0 || spec.vocab_size > largest_vocab)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a specialization's vocab_size is {}; expected 0 (a run-time value) to {}", spec.vocab_size,
                            largest_vocab));
}

Specialization normalised(Specialization spec) {
  const bool reads_rows = spec.op == Operator::logp_forward || spec.op == Operator::logp_with_gradient;
  const bool fixed = reads_rows && spec.vocab_size >= smallest_fixed_vocab;
  if (!fixed) spec.vocab_size = 0;
  // Finishing reads nodes and ids, never logits in their storage type.
  if (spec.op == Operator::logp_finish) spec.logits_dtype = DType::float32;
  return spec;
}

} // namespace bilogp
