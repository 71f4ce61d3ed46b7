// The machine code of a cubin as text, and what it must not hold.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cuda_test {

// nvdisasm's path: BILOGP_NVDISASM, else the one that fetch_tools.sh fetched, else PATH's; empty when there is none.
std::string disassembler();

// One instruction per line, as nvdisasm prints them. Throws std::runtime_error when it fails.
std::string disassemble(const std::string& cubin);

// What in a portable kernel's machine code could give other bits than its source says: approximate functions besides
// the first guess of a division. One line each. (Flushed subnormals are looked for in the PTX: the machine code's own
// routines for divisions flush where they know that nothing is lost.)
std::vector<std::string> inexact_instructions(std::string_view sass);
// Loads and stores of local memory: registers that did not fit.
std::size_t local_memory_instructions(std::string_view sass);

// What in a portable kernel's PTX a later compiler could fuse or round otherwise: a multiplication or an addition
// without a rounding of its own, approximate or flushing forms.
std::vector<std::string> loose_instructions(std::string_view ptx);

} // namespace cuda_test
