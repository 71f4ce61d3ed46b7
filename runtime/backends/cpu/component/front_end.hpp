// From kernel source to LLVM's intermediate representation, with clang as a library and files in memory.
#pragma once

#include <memory>

#include "clang/Frontend/CompilerInstance.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include "runtime/backends/cpu/component/bilogp_clang.h"
#include "runtime/backends/cpu/component/diagnostics.hpp"

namespace bilogp::clang_component {

// A compiler set up for one request. The diagnostics must outlive it.
// Null, with the reason in `diagnostics`, for arguments that clang does not take or a request without files.
std::unique_ptr<clang::CompilerInstance> set_up_compiler(const bilogp_clang_request& request, Diagnostics& diagnostics);

// Unoptimized; null, with the reason in the compiler's diagnostics, when the source does not compile.
std::unique_ptr<llvm::Module> compile_source(clang::CompilerInstance& compiler, llvm::LLVMContext& context);

} // namespace bilogp::clang_component
