// What module.cpp binds: one function per operator. Arguments are those of the Python functions in bilogp/_api.py, in
// their order.
#pragma once

#include <nanobind/nanobind.h>

namespace bilogp::python {

void bind_rows(nanobind::module_& module);    // logp, logp_forward, logp_backward
void bind_shards(nanobind::module_& module);  // node_count, logp_partial, logp_finish
void bind_reports(nanobind::module_& module); // warmup, take_errors, threads, what is loaded
void bind_jax(nanobind::module_& module);     // the handlers of jax

} // namespace bilogp::python
