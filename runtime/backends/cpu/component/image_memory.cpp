#include "runtime/backends/cpu/component/image_memory.hpp"

#include "llvm/ExecutionEngine/JITLink/JITLink.h"
#include "llvm/Support/Alignment.h"

namespace bilogp::clang_component {
namespace {

namespace jitlink = llvm::jitlink;

constexpr std::uint64_t page_bytes = 4096; // the least that a mapping begins at

// The bytes are in place when JITLink has applied the relocations; nothing is left to do.
class LinkedInPlace : public jitlink::JITLinkMemoryManager::InFlightAlloc {
public:
  void abandon(OnAbandonedFunction on_abandoned) override { on_abandoned(llvm::Error::success()); }
  void finalize(OnFinalizedFunction on_finalized) override {
    on_finalized(jitlink::JITLinkMemoryManager::FinalizedAlloc(ImageMemory::base));
  }
};

} // namespace

void ImageMemory::allocate(const jitlink::JITLinkDylib*, jitlink::LinkGraph& graph, OnAllocatedFunction on_allocated) {
  jitlink::BasicLayout layout(graph);
  std::uint64_t size = 0;
  for (auto& [group, segment] : layout.segments()) {
    if (segment.Alignment.value() > page_bytes)
      return on_allocated(llvm::createStringError(llvm::inconvertibleErrorCode(),
                                                  "the kernel has data aligned to more than 4096 bytes"));
    size = llvm::alignTo(size, segment.Alignment);
    segment.Addr = base + size;
    size += segment.ContentSize + segment.ZeroFillSize;
  }
  code_.assign(size, '\0');
  for (auto& [group, segment] : layout.segments()) segment.WorkingMem = code_.data() + (segment.Addr - base);
  if (llvm::Error error = layout.apply()) return on_allocated(std::move(error));
  on_allocated(std::make_unique<LinkedInPlace>());
}

void ImageMemory::deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction on_deallocated) {
  for (FinalizedAlloc& allocation : allocations) allocation.release();
  on_deallocated(llvm::Error::success());
}

} // namespace bilogp::clang_component
