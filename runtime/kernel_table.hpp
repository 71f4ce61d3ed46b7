// KernelTable: the kernels loaded into this process.
//
// A lookup takes no lock, allocates nothing and reads two cache lines: it probes an immutable open-addressing snapshot
// that is replaced as a whole when a kernel is added. Nothing is ever unloaded, so an entry stays valid for ever.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "bilogp/runtime.hpp"
#include "runtime/kernel_key.hpp"

namespace bilogp {

struct LoadedKernel {
  void* entry = nullptr; // the back end knows its signature; null when this machine cannot run it
  KernelInfo info;
};

class KernelTable {
public:
  // Null when the kernel is not loaded yet.
  [[nodiscard]] const LoadedKernel* find(KernelKey key) const noexcept {
    const Snapshot* snapshot = snapshot_.load(std::memory_order_acquire);
    for (std::uint64_t at = slot_of(key);; ++at) {
      const Slot& slot = snapshot->slots[at & snapshot->mask];
      if (slot.key == key) return slot.kernel;
      if (slot.key.word == 0) return nullptr;
    }
  }

  // Finds, or makes with `make`. One thread per key makes; the others wait for it and share its kernel, or its error.
  // A later call tries again after an error.
  const LoadedKernel& find_or_make(KernelKey key, const std::function<LoadedKernel()>& make);

  [[nodiscard]] std::vector<const LoadedKernel*> all() const;

  KernelTable();
  static KernelTable& of_process(); // never destroyed

private:
  struct Slot {
    KernelKey key;
    const LoadedKernel* kernel = nullptr;
  };
  struct Snapshot {
    std::uint64_t mask = 0;
    std::vector<Slot> slots;
  };
  struct Flight { // of a kernel being made
    bool done = false;
    const LoadedKernel* kernel = nullptr;
    std::exception_ptr error;
  };

  static std::uint64_t slot_of(KernelKey key) noexcept { return (key.word * 0x9e3779b97f4a7c15ULL) >> 40; }
  void insert(KernelKey key, const LoadedKernel* kernel); // with mutex_ held

  std::atomic<const Snapshot*> snapshot_;
  mutable std::mutex mutex_;
  std::condition_variable landed_;
  std::map<std::uint64_t, std::shared_ptr<Flight>> flights_;
  std::vector<std::unique_ptr<LoadedKernel>> kernels_;
  std::vector<std::unique_ptr<Snapshot>> snapshots_; // the old ones too: a reader may still be in one
};

} // namespace bilogp
