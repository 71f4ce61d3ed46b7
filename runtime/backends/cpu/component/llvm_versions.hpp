// Where the C++ interfaces of LLVM and clang 19 and 22 differ; the rest of the component is the same for both.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "clang/Basic/DiagnosticOptions.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/CompilerInvocation.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/ExecutionEngine/JITLink/JITLink.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/Target/TargetMachine.h"

#if LLVM_VERSION_MAJOR != 19 && LLVM_VERSION_MAJOR != 22
#error "bilogp builds with LLVM and clang 19 or 22"
#endif

namespace bilogp::clang_component {

using FileSystem = llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem>;

#if LLVM_VERSION_MAJOR >= 20

// Fills `invocation` from cc1 arguments; errors go to `consumer`.
inline bool parse_arguments(clang::CompilerInvocation& invocation, llvm::ArrayRef<const char*> arguments,
                            clang::DiagnosticConsumer& consumer) {
  clang::DiagnosticOptions options;
  clang::DiagnosticsEngine engine(llvm::makeIntrusiveRefCnt<clang::DiagnosticIDs>(), options, &consumer, false);
  return clang::CompilerInvocation::CreateFromArgs(invocation, arguments, engine);
}

inline std::unique_ptr<clang::CompilerInstance> make_compiler(std::shared_ptr<clang::CompilerInvocation> invocation,
                                                              FileSystem files, clang::DiagnosticConsumer& consumer) {
  auto compiler = std::make_unique<clang::CompilerInstance>(std::move(invocation));
  compiler->setVirtualFileSystem(std::move(files));
  compiler->createDiagnostics(&consumer, /*ShouldOwnClient=*/false);
  compiler->createFileManager();
  return compiler;
}

inline const llvm::Target* look_up_target(const llvm::Triple& triple, std::string& why) {
  return llvm::TargetRegistry::lookupTarget(triple, why);
}

inline std::unique_ptr<llvm::TargetMachine> make_target_machine(const llvm::Target& target, const llvm::Triple& triple,
                                                                const std::string& cpu, const std::string& features,
                                                                const llvm::TargetOptions& options,
                                                                llvm::CodeGenOptLevel level) {
  return std::unique_ptr<llvm::TargetMachine>(target.createTargetMachine(
      triple, cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level, /*JIT=*/false));
}

inline llvm::Expected<std::unique_ptr<llvm::jitlink::LinkGraph>> make_link_graph(llvm::MemoryBufferRef object) {
  return llvm::jitlink::createLinkGraphFromObject(object, std::make_shared<llvm::orc::SymbolStringPool>());
}

inline llvm::StringRef name_of(const llvm::jitlink::Symbol& symbol) {
  return symbol.hasName() ? *symbol.getName() : llvm::StringRef();
}

#else

inline bool parse_arguments(clang::CompilerInvocation& invocation, llvm::ArrayRef<const char*> arguments,
                            clang::DiagnosticConsumer& consumer) {
  clang::DiagnosticsEngine engine(llvm::makeIntrusiveRefCnt<clang::DiagnosticIDs>(),
                                  llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>(), &consumer, false);
  return clang::CompilerInvocation::CreateFromArgs(invocation, arguments, engine);
}

inline std::unique_ptr<clang::CompilerInstance> make_compiler(std::shared_ptr<clang::CompilerInvocation> invocation,
                                                              FileSystem files, clang::DiagnosticConsumer& consumer) {
  auto compiler = std::make_unique<clang::CompilerInstance>();
  compiler->setInvocation(std::move(invocation));
  compiler->createDiagnostics(&consumer, /*ShouldOwnClient=*/false);
  compiler->createFileManager(std::move(files));
  return compiler;
}

inline const llvm::Target* look_up_target(const llvm::Triple& triple, std::string& why) {
  return llvm::TargetRegistry::lookupTarget(triple.str(), why);
}

inline std::unique_ptr<llvm::TargetMachine> make_target_machine(const llvm::Target& target, const llvm::Triple& triple,
                                                                const std::string& cpu, const std::string& features,
                                                                const llvm::TargetOptions& options,
                                                                llvm::CodeGenOptLevel level) {
  return std::unique_ptr<llvm::TargetMachine>(target.createTargetMachine(
      triple.str(), cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level, /*JIT=*/false));
}

inline llvm::Expected<std::unique_ptr<llvm::jitlink::LinkGraph>> make_link_graph(llvm::MemoryBufferRef object) {
  return llvm::jitlink::createLinkGraphFromObject(object);
}

inline llvm::StringRef name_of(const llvm::jitlink::Symbol& symbol) {
  return symbol.hasName() ? symbol.getName() : llvm::StringRef();
}

#endif

} // namespace bilogp::clang_component
