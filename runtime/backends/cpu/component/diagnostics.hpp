// Collects what clang and LLVM have to say about a kernel as one sentence instead of printing it.
#pragma once

#include <string>

#include "clang/Basic/Diagnostic.h"
#include "clang/Basic/SourceLocation.h"
#include "llvm/IR/LLVMContext.h"

namespace clang {
class SourceManager;
}

namespace bilogp::clang_component {

// Keeps the first error, with the notes that explain it, and counts the others.
class Diagnostics : public clang::DiagnosticConsumer {
public:
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& diagnostic) override;

  // Receives the errors of LLVM's passes too; without this LLVM prints them and ends the process.
  void attach(llvm::LLVMContext& context, const clang::SourceManager* sources);

  void add_error(const std::string& place, const std::string& message);

  [[nodiscard]] bool failed() const { return errors_ > 0; }
  // "logp_forward.kernel:12:5: error: unknown type name 'foo' (and 2 more errors)"
  [[nodiscard]] std::string sentence() const;

private:
  std::string first_;
  unsigned errors_ = 0;
  unsigned notes_ = 0;
};

// "canon/leaf.h:12:5: ", or nothing for a location outside of any file.
std::string place_of(const clang::SourceManager& sources, clang::SourceLocation location);

} // namespace bilogp::clang_component
