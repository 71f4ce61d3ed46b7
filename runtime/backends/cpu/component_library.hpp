// The compiler component as a shared object: finding it, and loading it once.
//
// Thread-safety: everything here may be called from any thread.
#pragma once

#include <string>

#include "runtime/backends/cpu/compiler.hpp"
#include "runtime/backends/cpu/component/bilogp_clang.h"

namespace bilogp::cpu {

struct ComponentLibrary {
  decltype(&bilogp_clang_compile) compile = nullptr;
  decltype(&bilogp_clang_free) free = nullptr;
};

// Loads the component at the first call (`seconds` receives what that took, else 0) and keeps it to the end of the
// process. A failed attempt is made again by the next call. Throws Error(compile_failed) with the places looked at and
// what to install, or when the component was built from other sources or clang was exchanged under it.
const ComponentLibrary& component_library(double& seconds);

// Where the component would be loaded from; loads nothing.
ComponentStatus find_component();

} // namespace bilogp::cpu
