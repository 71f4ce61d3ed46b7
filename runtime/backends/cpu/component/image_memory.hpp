// Where JITLink puts the parts of an image: one after the other into one string, at made-up addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/Orc/Shared/ExecutorAddress.h"

namespace bilogp::clang_component {

class ImageMemory : public llvm::jitlink::JITLinkMemoryManager {
public:
  // Any page would do: the image does not depend on it.
  static constexpr llvm::orc::ExecutorAddr base{0x100000};

  // The linked image appears in `code`.
  explicit ImageMemory(std::string& code) : code_(code) {}

  using JITLinkMemoryManager::allocate;
  using JITLinkMemoryManager::deallocate;
  void allocate(const llvm::jitlink::JITLinkDylib* library, llvm::jitlink::LinkGraph& graph,
                OnAllocatedFunction on_allocated) override;
  void deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction on_deallocated) override;

private:
  std::string& code_;
};

} // namespace bilogp::clang_component
