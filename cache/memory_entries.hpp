// Entries kept in this process only: of a store without a file, or whose file cannot take them.
//
// Thread-safety: none; the store's mutex guards it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cache/store.hpp"

namespace bilogp::cache {

class MemoryEntries {
public:
  std::optional<Entry> get(std::string_view key_text) const;
  // Drops the entries put first when `maximal_bytes` would be passed; false when one alone is too large.
  bool put(std::string_view key_text, Entry entry, std::int64_t created_unix, std::int64_t maximal_bytes);
  void erase(std::string_view key_text);
  std::int64_t clear(); // how many there were

  void for_each(const std::function<void(const ListedEntry&, std::string_view payload)>& visit) const;

private:
  struct Kept {
    Entry entry;
    std::int64_t created_unix = 0;
    std::uint64_t turn = 0; // of being put
  };
  std::map<std::string, Kept, std::less<>> kept_;
  std::int64_t bytes_ = 0;
  std::uint64_t next_turn_ = 0;
};

} // namespace bilogp::cache
