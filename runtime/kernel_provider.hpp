// Where a kernel comes from: this process, the store, or the compiler.
#pragma once

#include "runtime/backends/cpu/targets.hpp"
#include "runtime/kernel_table.hpp"

namespace bilogp {

// Asks the store, else compiles (one process per key at a time) and stores. The image is mapped before it is stored,
// so that nothing is published that does not load. On a target that this machine lacks the entry stays null.
// Throws Error(compile_failed) and what mapping throws.
LoadedKernel provide_cpu_kernel(const Specialization& spec, const cpu::Target& target, bool runnable);

} // namespace bilogp
