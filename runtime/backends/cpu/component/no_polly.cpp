// Debian's archives of clang expect Polly beside them, an optimizer of loop nests that nothing here uses. A component
// that they are linked into says instead that there is no such extension.
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"

llvm::PassPluginLibraryInfo getPollyPluginInfo(); // as clang declares it

llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "no polly", "", [](llvm::PassBuilder&) {}};
}
