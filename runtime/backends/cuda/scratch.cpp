#include "runtime/backends/cuda/scratch.hpp"

#include "runtime/backends/cuda/contexts.hpp"
#include "runtime/backends/cuda/plans.hpp"

namespace bilogp::cuda {
namespace {

// Above so many streams their launches leave an event behind, so that the scratch of one that rests can be given to a
// new stream: nobody tells us when a stream is destroyed.
constexpr std::size_t many_streams = 64;

constexpr std::size_t node_bytes = largest_nodes * 2 * sizeof(std::int32_t);
constexpr std::size_t ticket_bytes = largest_tickets * sizeof(std::uint32_t);
constexpr std::size_t row_state_bytes = largest_tickets * 2 * sizeof(std::int32_t);

} // namespace

struct ScratchPool::GraphEntry {
  ScratchPool* pool;
  GraphKey key;
  Scratch scratch;
};

Scratch ScratchPool::take(Stream stream, StreamEntry** entry) {
  CaptureStatus status = CaptureStatus::none;
  std::uint64_t capture_id = 0;
  Graph graph = nullptr;
  check(driver_, driver_.stream_get_capture(stream, &status, &capture_id, &graph, nullptr, nullptr),
        "asking a stream whether it is captured");
  const std::scoped_lock lock(mutex_);
  take_back_from_graphs();
  if (status == CaptureStatus::active) return of_graph({capture_id, stream}, graph);
  std::uint64_t stream_id = 0;
  check(driver_, driver_.stream_get_id(stream, &stream_id), "asking a stream for its number");
  auto found = streams_.find(stream_id);
  if (found == streams_.end()) {
    Scratch scratch = streams_.size() >= many_streams ? of_stream_at_rest() : Scratch{};
    if (!scratch.present()) scratch = fresh();
    found = streams_.try_emplace(stream_id).first;
    found->second.scratch = scratch;
  }
  ++found->second.leases;
  *entry = &found->second;
  return found->second.scratch;
}

void ScratchPool::give_back(StreamEntry& entry, Stream stream) noexcept {
  const std::scoped_lock lock(mutex_);
  --entry.leases;
  if (streams_.size() < many_streams) return;
  const OutsideCaptures outside(driver_);
  if (entry.last_launch == nullptr && driver_.event_create(&entry.last_launch, event_disable_timing) != Result::success)
    return;
  entry.is_recorded = driver_.event_record(entry.last_launch, stream) == Result::success;
}

Scratch ScratchPool::of_stream_at_rest() {
  const OutsideCaptures outside(driver_); // asking an event would spoil one
  for (auto at = streams_.begin(); at != streams_.end(); ++at) {
    StreamEntry& entry = at->second;
    if (entry.leases > 0 || !entry.is_recorded || driver_.event_query(entry.last_launch) != Result::success) continue;
    const Scratch scratch = entry.scratch;
    driver_.event_destroy(entry.last_launch);
    streams_.erase(at);
    return scratch;
  }
  return {};
}

Scratch ScratchPool::of_graph(const GraphKey& key, Graph graph) {
  if (const auto found = graphs_.find(key); found != graphs_.end()) return found->second->scratch;
  auto* const entry = new GraphEntry{this, key, fresh()};
  UserObject object = nullptr;
  Result result = driver_.user_object_create(&object, entry, graph_is_gone, 1, user_object_no_destructor_sync);
  if (result != Result::success) {
    free_.push_back(entry->scratch);
    delete entry;
    check(driver_, result, "giving a graph its scratch");
  }
  result = driver_.graph_retain_user_object(graph, object, 1, graph_user_object_move);
  if (result != Result::success) {          // a graph that does not own its scratch must not get any
    driver_.user_object_release(object, 1); // which calls graph_is_gone
    check(driver_, result, "giving a graph its scratch");
  }
  graphs_.emplace(key, entry);
  return entry->scratch;
}

void ScratchPool::graph_is_gone(void* pointer) {
  auto* const entry = static_cast<GraphEntry*>(pointer);
  const std::scoped_lock lock(entry->pool->gone_mutex_);
  entry->pool->gone_.push_back(entry);
}

void ScratchPool::take_back_from_graphs() {
  const std::scoped_lock lock(gone_mutex_);
  for (const GraphEntry* const entry : gone_) {
    graphs_.erase(entry->key);
    free_.push_back(entry->scratch);
    delete entry;
  }
  gone_.clear();
}

Scratch ScratchPool::fresh() {
  if (!free_.empty()) {
    const Scratch scratch = free_.back();
    free_.pop_back();
    return scratch;
  }
  const OutsideCaptures outside(driver_);
  Scratch scratch;
  check(driver_, driver_.memory_allocate(&scratch.nodes, node_bytes + ticket_bytes + row_state_bytes),
        "allocating scratch for a launch");
  scratch.tickets = scratch.nodes + node_bytes;
  scratch.row_states = scratch.tickets + ticket_bytes;
  Stream stream = nullptr; // no work of the caller's is waited for
  Result result = driver_.stream_create(&stream, stream_non_blocking);
  if (result == Result::success) result = driver_.fill_words(scratch.tickets, 0, ticket_bytes / 4, stream);
  if (result == Result::success) result = driver_.stream_synchronize(stream);
  if (stream != nullptr) driver_.stream_destroy(stream);
  if (result != Result::success) driver_.memory_free(scratch.nodes);
  check(driver_, result, "clearing scratch for a launch");
  return scratch;
}

} // namespace bilogp::cuda
