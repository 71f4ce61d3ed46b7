// How a specialization becomes a CUDA kernel: the compile request, and the fields that determine its machine code.
#pragma once

#include <string>

#include "bilogp/specialization.hpp"
#include "cache/key.hpp"
#include "runtime/backends/cuda/compiler.hpp"

namespace bilogp::cuda {

// "bilogp_logp_forward"
std::string entry_name(const Specialization& spec);

CompileRequest compile_request(const Specialization& spec, const Target& target);

// All that the machine code depends on, NVRTC's own build among it, and nothing else. Throws where there is no NVRTC.
cache::Key store_key(const CompileRequest& request);

} // namespace bilogp::cuda
