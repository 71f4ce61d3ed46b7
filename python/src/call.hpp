// How every operator is called: without the GIL, watched while its kernel may have to be compiled, and followed by the
// warnings it made.
#pragma once

#include <nanobind/nanobind.h>

#include "bilogp/runtime.hpp"
#include "first_use.hpp"
#include "python_error.hpp"
#include "without_gil.hpp"

namespace bilogp::python {

inline Runtime& automatic_runtime() {
  static Runtime& runtime = Runtime::get("auto");
  return runtime;
}

template<class Call> void run(const Specialization& spec, const Device& device, const Call& call) {
  FirstUse first_use(spec, device);
  {
    const WithoutGil released;
    call(automatic_runtime());
  }
  first_use.succeeded();
  deliver_warnings();
}

inline Specialization specialization_of(Operator op, const TensorView& logits, const TensorView& ids,
                                        const LogpOptions& options) {
  Specialization spec{op, logits.dtype, ids.dtype, options.vocab_size, options.numerics};
  if (spec.vocab_size < 0) spec.vocab_size = logits.rank > 0 ? logits.shape[logits.rank - 1] : 0;
  return spec;
}

} // namespace bilogp::python
