#include "cache/memory_entries.hpp"

#include <algorithm>
#include <utility>

namespace bilogp::cache {

namespace {

std::int64_t size_of(std::string_view key_text, const Entry& entry) {
  return static_cast<std::int64_t>(key_text.size() + entry.payload.size());
}

} // namespace

std::optional<Entry> MemoryEntries::get(std::string_view key_text) const {
  const auto found = kept_.find(key_text);
  return found == kept_.end() ? std::nullopt : std::optional<Entry>(found->second.entry);
}

bool MemoryEntries::put(std::string_view key_text, Entry entry, std::int64_t created_unix, std::int64_t maximal_bytes) {
  const std::int64_t size = size_of(key_text, entry);
  erase(key_text);
  if (size > maximal_bytes) return false;
  while (bytes_ + size > maximal_bytes) {
    const auto first = std::min_element(kept_.begin(), kept_.end(), [](const auto& left, const auto& right) {
      return left.second.turn < right.second.turn;
    });
    erase(std::string(first->first));
  }
  kept_.emplace(std::string(key_text), Kept{std::move(entry), created_unix, next_turn_++});
  bytes_ += size;
  return true;
}

void MemoryEntries::erase(std::string_view key_text) {
  const auto found = kept_.find(key_text);
  if (found == kept_.end()) return;
  bytes_ -= size_of(key_text, found->second.entry);
  kept_.erase(found);
}

std::int64_t MemoryEntries::clear() {
  const auto count = static_cast<std::int64_t>(kept_.size());
  kept_.clear();
  bytes_ = 0;
  return count;
}

void MemoryEntries::for_each(const std::function<void(const ListedEntry&, std::string_view)>& visit) const {
  for (const auto& [text, kept] : kept_)
    visit({to_hex(hash128(text)), text, kept.entry.metadata, static_cast<std::int64_t>(kept.entry.payload.size()),
           kept.created_unix},
          kept.entry.payload);
}

} // namespace bilogp::cache
