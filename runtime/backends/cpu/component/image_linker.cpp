#include "runtime/backends/cpu/component/image_linker.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/ExecutionEngine/JITLink/JITLink.h"
#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/JITLink/aarch64.h"
#include "llvm/ExecutionEngine/JITLink/x86_64.h"
#include "llvm/Support/MemoryBuffer.h"

#include "runtime/backends/cpu/component/image_memory.hpp"
#include "runtime/backends/cpu/component/llvm_versions.hpp"

namespace bilogp::clang_component {
namespace {

namespace jitlink = llvm::jitlink;
LLVM_ENABLE_BITMASK_ENUMS_IN_NAMESPACE();

llvm::Error refuse(const std::string& sentence) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s", sentence.c_str());
}

// Distances within the image, which hold wherever it is mapped. Pages are those of the instruction, 4096 bytes, and
// an image begins at a page.
bool is_relative(const llvm::Triple& triple, jitlink::Edge::Kind kind) {
  if (kind < jitlink::Edge::FirstRelocation) return true;
  if (triple.getArch() == llvm::Triple::x86_64) {
    namespace x86 = jitlink::x86_64;
    return llvm::is_contained(
        {x86::Delta64, x86::Delta32, x86::Delta8, x86::NegDelta64, x86::NegDelta32, x86::BranchPCRel32, x86::PCRel32},
        kind);
  }
  namespace arm = jitlink::aarch64;
  return llvm::is_contained({arm::Delta64, arm::Delta32, arm::NegDelta64, arm::NegDelta32, arm::Branch26PCRel,
                             arm::TestAndBranch14PCRel, arm::CondBranch19PCRel, arm::LDRLiteral19, arm::ADRLiteral21,
                             arm::Page21, arm::PageOffset12},
                            kind);
}

std::string joined(std::vector<std::string> names) {
  std::ranges::sort(names);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

llvm::Error check_undefined(jitlink::LinkGraph& graph) {
  std::vector<std::string> names;
  for (const jitlink::Symbol* symbol : graph.external_symbols()) names.push_back(name_of(*symbol).str());
  if (names.empty()) return llvm::Error::success();
  return refuse("the kernel uses what it does not define: " + joined(names) +
                "; a kernel has no library under it and must define all it calls");
}

// The name of what a block belongs to, for people.
std::string owner_of(jitlink::LinkGraph& graph, const jitlink::Block& block) {
  for (const jitlink::Symbol* symbol : graph.defined_symbols())
    if (&symbol->getBlock() == &block && symbol->hasName()) return name_of(*symbol).str();
  return block.getSection().getName().str();
}

llvm::Error check_position(jitlink::LinkGraph& graph) {
  for (const jitlink::Block* block : graph.blocks())
    for (const jitlink::Edge& edge : block->edges())
      if (!is_relative(graph.getTargetTriple(), edge.getKind()))
        return refuse(owner_of(graph, *block) + " holds an absolute address of " + name_of(edge.getTarget()).str() +
                      " (relocation " + graph.getEdgeKindName(edge.getKind()) +
                      "); a kernel may refer to its own code and data only by distance");
  return llvm::Error::success();
}

llvm::Error check_writable(jitlink::LinkGraph& graph) {
  std::vector<std::string> names;
  for (const jitlink::Block* block : graph.blocks())
    if ((block->getSection().getMemProt() & llvm::orc::MemProt::Write) != llvm::orc::MemProt::None)
      names.push_back(owner_of(graph, *block));
  if (names.empty()) return llvm::Error::success();
  return refuse("the kernel has writable data: " + joined(names) + "; make it constant or local");
}

class LinkContext : public jitlink::JITLinkContext {
public:
  LinkContext(llvm::ArrayRef<std::string> entries, ImageMemory& memory, std::optional<llvm::Error>& failure,
              std::vector<std::uint64_t>& offsets)
      : JITLinkContext(nullptr), entries_(entries), memory_(memory), failure_(failure), offsets_(offsets) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory_; }
  void notifyFailed(llvm::Error error) override { failure_.emplace(std::move(error)); }
  void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc allocation) override { allocation.release(); }

  // Not reached: undefined symbols are refused before.
  void lookup(const LookupMap&, std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> next) override {
    next->run(refuse("the kernel uses what it does not define"));
  }

  // No tables of addresses or stubs are made: what would need one is refused.
  bool shouldAddDefaultTargetPasses(const llvm::Triple&) const override { return false; }

  llvm::Error modifyPassConfig(jitlink::LinkGraph&, jitlink::PassConfiguration& passes) override {
    passes.PrePrunePasses.emplace_back([this](jitlink::LinkGraph& graph) { return keep_entries(graph); });
    passes.PostPrunePasses.emplace_back(check_undefined);
    passes.PostPrunePasses.emplace_back(check_position);
    passes.PostPrunePasses.emplace_back(check_writable);
    return llvm::Error::success();
  }

  llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
    for (const std::string& entry : entries_) offsets_.push_back(find(graph, entry)->getAddress() - ImageMemory::base);
    return llvm::Error::success();
  }

private:
  static jitlink::Symbol* find(jitlink::LinkGraph& graph, llvm::StringRef name) {
    for (jitlink::Symbol* symbol : graph.defined_symbols())
      if (name_of(*symbol) == name && symbol->getScope() != jitlink::Scope::Local) return symbol;
    return nullptr;
  }

  llvm::Error keep_entries(jitlink::LinkGraph& graph) {
    if (entries_.empty()) return refuse("no entry was asked for");
    for (const std::string& entry : entries_) {
      jitlink::Symbol* symbol = find(graph, entry);
      if (symbol == nullptr || !symbol->isCallable())
        return refuse("the kernel does not define the function " + entry + "; it must be extern \"C\" and not static");
      symbol->setLive(true);
    }
    return llvm::Error::success();
  }

  llvm::ArrayRef<std::string> entries_;
  ImageMemory& memory_;
  std::optional<llvm::Error>& failure_;
  std::vector<std::uint64_t>& offsets_;
};

} // namespace

llvm::Expected<LinkedImage> link_image(llvm::StringRef object, llvm::ArrayRef<std::string> entries) {
  auto graph = make_link_graph(llvm::MemoryBufferRef(object, "kernel"));
  if (!graph) return graph.takeError();
  LinkedImage image;
  image.machine =
      (*graph)->getTargetTriple().getArch() == llvm::Triple::x86_64 ? llvm::ELF::EM_X86_64 : llvm::ELF::EM_AARCH64;
  ImageMemory memory(image.code);
  std::optional<llvm::Error> failure;
  jitlink::link(std::move(*graph), std::make_unique<LinkContext>(entries, memory, failure, image.entry_offsets));
  if (failure) return std::move(*failure);
  return image;
}

} // namespace bilogp::clang_component
