#include "runtime/backends/cpu/component/front_end.hpp"

#include <string>
#include <vector>

#include "clang/CodeGen/CodeGenAction.h"
#include "clang/Frontend/CompilerInvocation.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include "runtime/backends/cpu/component/llvm_versions.hpp"

namespace bilogp::clang_component {
namespace {

// All files under one root; nothing of the real file system can be seen.
FileSystem file_system(const bilogp_clang_request& request, Diagnostics& diagnostics) {
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->setCurrentWorkingDirectory("/");
  for (std::size_t i = 0; i < request.file_count; ++i) {
    const bilogp_clang_file& file = request.files[i];
    const llvm::StringRef name(file.name, file.name_size);
    const llvm::StringRef text(file.text, file.text_size);
    if (!files->addFile(name, 0, llvm::MemoryBuffer::getMemBufferCopy(text, name)))
      diagnostics.add_error({}, "there are two different files \"" + name.str() + "\"");
  }
  return files;
}

} // namespace

std::unique_ptr<clang::CompilerInstance> set_up_compiler(const bilogp_clang_request& request,
                                                         Diagnostics& diagnostics) {
  if (request.file_count == 0) {
    diagnostics.add_error({}, "there is no source file");
    return nullptr;
  }
  const std::string main_file(request.files[0].name, request.files[0].name_size);
  std::vector<const char*> arguments(request.arguments, request.arguments + request.argument_count);
  arguments.push_back("-I."); // "canon/leaf.h" is found from every directory
  arguments.push_back(main_file.c_str());
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  if (!parse_arguments(*invocation, arguments, diagnostics) || diagnostics.failed()) {
    if (!diagnostics.failed()) diagnostics.add_error({}, "clang does not take its options");
    return nullptr;
  }
  invocation->getDiagnosticOpts().ShowCarets = 0; // else the number of errors is printed at the end
  FileSystem files = file_system(request, diagnostics);
  if (diagnostics.failed()) return nullptr;
  auto compiler = make_compiler(std::move(invocation), std::move(files), diagnostics);
  compiler->setVerboseOutputStream(std::make_unique<llvm::raw_null_ostream>());
  return compiler;
}

std::unique_ptr<llvm::Module> compile_source(clang::CompilerInstance& compiler, llvm::LLVMContext& context) {
  clang::EmitLLVMOnlyAction action(&context);
  if (!compiler.ExecuteAction(action)) return nullptr;
  return action.takeModule();
}

} // namespace bilogp::clang_component
