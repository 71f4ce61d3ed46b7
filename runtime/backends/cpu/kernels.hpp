// How a specialization becomes a CPU kernel: the compile request, and the fields that determine its machine code.
#pragma once

#include <cstdint>
#include <string>

#include "bilogp/specialization.hpp"
#include "cache/key.hpp"
#include "runtime/backends/cpu/compiler.hpp"

namespace bilogp::cpu {

// Entry point of every CPU kernel: its operator's arguments struct (templates/canon/arguments.h) and a range of rows.
using KernelFunction = void (*)(const void* arguments, std::int64_t row_begin, std::int64_t row_end);

// "bilogp_logp_forward"
std::string entry_name(const Specialization& spec);

CompileRequest compile_request(const Specialization& spec, const Target& target);

// All that the machine code depends on, and nothing else.
cache::Key store_key(const CompileRequest& request);

} // namespace bilogp::cpu
