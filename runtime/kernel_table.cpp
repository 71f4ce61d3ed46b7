#include "runtime/kernel_table.hpp"

namespace bilogp {

KernelTable::KernelTable() {
  auto empty = std::make_unique<Snapshot>();
  empty->mask = 15;
  empty->slots.resize(16);
  snapshot_.store(empty.get(), std::memory_order_release);
  snapshots_.push_back(std::move(empty));
}

KernelTable& KernelTable::of_process() {
  static auto* table = new KernelTable; // kernels may run during static destruction
  return *table;
}

void KernelTable::insert(KernelKey key, const LoadedKernel* kernel) {
  const Snapshot* old = snapshot_.load(std::memory_order_relaxed);
  std::vector<Slot> entries;
  for (const Slot& slot : old->slots)
    if (slot.key.word != 0) entries.push_back(slot);
  entries.push_back({key, kernel});
  auto next = std::make_unique<Snapshot>();
  std::size_t size = old->slots.size();
  while (size < 2 * entries.size()) size *= 2;
  next->mask = size - 1;
  next->slots.resize(size);
  for (const Slot& entry : entries) {
    std::uint64_t at = slot_of(entry.key);
    while (next->slots[at & next->mask].key.word != 0) ++at;
    next->slots[at & next->mask] = entry;
  }
  snapshot_.store(next.get(), std::memory_order_release);
  snapshots_.push_back(std::move(next));
}

const LoadedKernel& KernelTable::find_or_make(KernelKey key, const std::function<LoadedKernel()>& make) {
  std::shared_ptr<Flight> flight;
  {
    std::unique_lock lock(mutex_);
    if (const LoadedKernel* kernel = find(key)) return *kernel;
    if (const auto found = flights_.find(key.word); found != flights_.end()) {
      flight = found->second;
      landed_.wait(lock, [&] { return flight->done; });
      if (flight->error) std::rethrow_exception(flight->error);
      return *flight->kernel;
    }
    flight = std::make_shared<Flight>();
    flights_.emplace(key.word, flight);
  }
  std::unique_ptr<LoadedKernel> made;
  std::exception_ptr error;
  try {
    made = std::make_unique<LoadedKernel>(make());
  } catch (...) {
    error = std::current_exception();
  }
  const std::scoped_lock lock(mutex_);
  flights_.erase(key.word);
  flight->done = true;
  flight->error = error;
  if (made) {
    flight->kernel = made.get();
    insert(key, made.get());
    kernels_.push_back(std::move(made));
  }
  landed_.notify_all();
  if (error) std::rethrow_exception(error);
  return *flight->kernel;
}

std::vector<const LoadedKernel*> KernelTable::all() const {
  const std::scoped_lock lock(mutex_);
  std::vector<const LoadedKernel*> kernels;
  for (const auto& kernel : kernels_) kernels.push_back(kernel.get());
  return kernels;
}

} // namespace bilogp
