// From LLVM's intermediate representation to an object file in memory.
#pragma once

#include <memory>

#include "clang/Frontend/CompilerInstance.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include "runtime/backends/cpu/component/diagnostics.hpp"

namespace bilogp::clang_component {

using ObjectBytes = llvm::SmallVector<char, 0>;

// Registers LLVM's targets, once per process. Must come before any front end runs: clang's looks targets up too, and
// one that another thread is still registering has null functions.
void initialize_targets();

// For the compiler's target and optimization level; null, with the reason in `diagnostics`, for an unknown target.
std::unique_ptr<llvm::TargetMachine> target_machine(const clang::CompilerInstance& compiler, Diagnostics& diagnostics);

// Runs the passes of the compiler's optimization level.
void optimize(llvm::Module& module, const clang::CompilerInstance& compiler, llvm::TargetMachine& machine);

// Empty, with the reason in the context's diagnostics, when code generation fails.
ObjectBytes generate_object(llvm::Module& module, llvm::TargetMachine& machine);

} // namespace bilogp::clang_component
