#include "runtime/backends/cpu/component/diagnostics.hpp"

#include <memory>

#include "clang/Basic/SourceManager.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/Support/raw_ostream.h"

namespace bilogp::clang_component {
namespace {

constexpr unsigned most_notes = 3; // of the first error

class PassDiagnostics : public llvm::DiagnosticHandler {
public:
  PassDiagnostics(Diagnostics& diagnostics, const clang::SourceManager* sources)
      : diagnostics_(diagnostics), sources_(sources) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() == llvm::DS_Error) diagnostics_.add_error(place(info), text(info));
    return true;
  }

private:
  // clang numbers its source locations; inline assembly carries them through to the assembler.
  [[nodiscard]] std::string place(const llvm::DiagnosticInfo& info) const {
    std::uint64_t cookie = 0;
    if (const auto* assembly = llvm::dyn_cast<llvm::DiagnosticInfoInlineAsm>(&info)) cookie = assembly->getLocCookie();
    if (const auto* source = llvm::dyn_cast<llvm::DiagnosticInfoSrcMgr>(&info)) cookie = source->getLocCookie();
    if (cookie == 0 || sources_ == nullptr) return {};
    return place_of(*sources_, clang::SourceLocation::getFromRawEncoding(static_cast<unsigned>(cookie)));
  }

  static std::string text(const llvm::DiagnosticInfo& info) {
    if (const auto* source = llvm::dyn_cast<llvm::DiagnosticInfoSrcMgr>(&info))
      return source->getSMDiag().getMessage().str();
    std::string message;
    llvm::raw_string_ostream stream(message);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    return message;
  }

  Diagnostics& diagnostics_;
  const clang::SourceManager* sources_;
};

} // namespace

std::string place_of(const clang::SourceManager& sources, clang::SourceLocation location) {
  const clang::PresumedLoc place = sources.getPresumedLoc(location);
  if (place.isInvalid()) return {};
  llvm::StringRef file = place.getFilename();
  file.consume_front("./");
  return file.str() + ":" + std::to_string(place.getLine()) + ":" + std::to_string(place.getColumn()) + ": ";
}

void Diagnostics::HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& diagnostic) {
  clang::DiagnosticConsumer::HandleDiagnostic(level, diagnostic);
  const bool note = level == clang::DiagnosticsEngine::Note;
  if (level < clang::DiagnosticsEngine::Error && !(note && errors_ == 1)) return;
  llvm::SmallString<256> message;
  diagnostic.FormatDiagnostic(message);
  std::string place;
  if (diagnostic.hasSourceManager()) place = place_of(diagnostic.getSourceManager(), diagnostic.getLocation());
  if (!note) return add_error(place, message.str().str());
  if (notes_++ < most_notes) first_ += "; " + place + "note: " + message.str().str();
}

void Diagnostics::attach(llvm::LLVMContext& context, const clang::SourceManager* sources) {
  context.setDiagnosticHandler(std::make_unique<PassDiagnostics>(*this, sources));
}

void Diagnostics::add_error(const std::string& place, const std::string& message) {
  if (errors_++ == 0) first_ = place + "error: " + message;
}

std::string Diagnostics::sentence() const {
  if (errors_ == 0) return "clang gave neither code nor a reason";
  if (errors_ == 1) return first_;
  return first_ + " (and " + std::to_string(errors_ - 1) + (errors_ == 2 ? " more error)" : " more errors)");
}

} // namespace bilogp::clang_component
