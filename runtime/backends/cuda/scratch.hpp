// Scratch memory of launches that cut rows among blocks.
//
// A block of it belongs to one stream, or to one stream's part of one captured graph, and is never shared between two:
// launches of a stream run one after the other, and so do the replays of one executable graph. (Two executables made
// from the same captured graph share its scratch, and must not be replayed at the same time.)
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/backends/cuda/driver.hpp"

namespace bilogp::cuda {

struct Scratch {
  Address nodes = 0;
  Address tickets = 0;    // all zero whenever no launch is using them
  Address row_states = 0; // between the launches of one call; as many as there are tickets
  [[nodiscard]] bool present() const noexcept { return nodes != 0; }
};

class ScratchPool {
public:
  explicit ScratchPool(const Driver& driver) : driver_(driver) {}

private:
  friend class ScratchLease;
  struct StreamEntry {
    Scratch scratch;
    int leases = 0;
    Event last_launch = nullptr; // recorded only while there are many streams
    bool is_recorded = false;
  };
  struct GraphEntry;
  using GraphKey = std::pair<std::uint64_t, Stream>; // the capture's number, and the stream within it

  Scratch take(Stream stream, StreamEntry** entry);
  void give_back(StreamEntry& entry, Stream stream) noexcept;
  Scratch of_graph(const GraphKey& key, Graph graph);
  Scratch fresh();             // from the free ones, or allocated
  Scratch of_stream_at_rest(); // of a stream whose last launch is over, or none
  void take_back_from_graphs();
  static void graph_is_gone(void* pointer); // called by the driver when the last user of a graph goes

  const Driver& driver_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, StreamEntry> streams_; // by the driver's number of the stream, never used again
  std::map<GraphKey, GraphEntry*> graphs_;
  std::vector<Scratch> free_;
  std::mutex gone_mutex_; // never held while the driver is called, since the driver calls what takes it
  std::vector<GraphEntry*> gone_;
};

// The stream's own scratch, or that of the graph it is being captured into, for as long as launches that use it are
// being queued: to be kept until the last of them is. Allocates at a stream's first call only. The device's context
// must be current, to the end. Throws Error(out_of_memory).
class ScratchLease {
public:
  ScratchLease(ScratchPool& pool, Stream stream) : pool_(pool), stream_(stream), scratch_(pool.take(stream, &entry_)) {}
  ~ScratchLease() {
    if (entry_ != nullptr) pool_.give_back(*entry_, stream_);
  }
  ScratchLease(const ScratchLease&) = delete;
  ScratchLease& operator=(const ScratchLease&) = delete;
  [[nodiscard]] const Scratch& scratch() const noexcept { return scratch_; }

private:
  ScratchPool& pool_;
  Stream stream_;
  ScratchPool::StreamEntry* entry_ = nullptr; // null for a graph's, which nobody else ever gets
  Scratch scratch_;
};

} // namespace bilogp::cuda
