// From an object file to a position-independent image, with LLVM's JITLink; for the machine at hand or another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace bilogp::clang_component {

struct LinkedImage {
  std::uint32_t machine = 0; // ELF e_machine
  std::string code;
  std::vector<std::uint64_t> entry_offsets; // in the order of the entries asked for
};

// Keeps what the entries reach. Fails, with one sentence, for a missing entry, undefined symbols, writable data, or
// references that depend on where the image is mapped.
llvm::Expected<LinkedImage> link_image(llvm::StringRef object, llvm::ArrayRef<std::string> entries);

} // namespace bilogp::clang_component
