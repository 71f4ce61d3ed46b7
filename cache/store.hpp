// Store: compiled kernels kept between processes, in one SQLite file per user.
//
// It knows keys and blobs and nothing about kernels. Losing it costs time, never a result: `get` answers nothing and
// `put` gives up when the file is full, read-only, corrupt, locked, gone or inherited over a fork; each store warns
// once about that. Every blob is checked against its own XXH3-128 (over key, metadata and payload) before it is
// handed out; one that does not match is dropped.
//
// Thread-safety: all members may be called from any thread. After a fork the child reopens the file by itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/key.hpp"

namespace bilogp::cache {

// Where a store lives and why, by the rules of `default_location`.
struct Location {
  std::string directory; // empty: memory only
  std::string reason;    // "BILOGP_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "passwd", "TMPDIR" or why memory only
  std::string note;      // for people: why a place before this one was passed over; else empty
};

// BILOGP_CACHE_DIR, $XDG_CACHE_HOME/bilogp, $HOME/.cache/bilogp, the passwd home's .cache/bilogp, a private
// $TMPDIR/bilogp-UID (0700, ours, not a link), else memory only. BILOGP_CACHE_DIR=":memory:" asks for memory only.
// A place is passed over when it cannot be used; one on a network file system is passed over for $TMPDIR/bilogp-UID,
// unless BILOGP_CACHE_DIR names it. A process with more rights than its user (setuid) ignores the environment.
// Creates nothing.
Location default_location();

// Columns beside the blob, for people and for `list`; part of the checksum.
struct Metadata {
  std::string backend;     // "cpu"
  std::string target;      // "x86-64-v4"
  std::string compiler;    // "clang 19.1.7"
  std::string description; // "logp_forward bfloat16 int64 vocab=49152 portable"
  std::int64_t compile_microseconds = 0;
};

struct Entry {
  Metadata metadata;
  std::string payload;
};

struct ListedEntry {
  std::string key_hash; // 32 hexadecimal digits
  std::string key_text;
  Metadata metadata;
  std::int64_t payload_bytes = 0;
  std::int64_t created_unix = 0;
};

struct VerifyReport {
  std::int64_t checked = 0;
  std::vector<ListedEntry> bad; // checksum or key does not match; they stay until `get` or `erase` drops them
};

// Held while one process compiles a key: others of the machine wait in `lock`. Released by its destructor, and by the
// kernel when the process dies. Correctness never depends on it.
class KeyLock {
public:
  KeyLock() = default;
  KeyLock(KeyLock&& other) noexcept;
  KeyLock& operator=(KeyLock&& other) noexcept;
  ~KeyLock();
  [[nodiscard]] bool held() const noexcept { return descriptor_ >= 0; }

private:
  friend KeyLock lock_range(const std::string& path, std::int64_t offset, std::chrono::milliseconds limit);
  KeyLock(int descriptor, std::uint64_t generation, std::int64_t offset)
      : descriptor_(descriptor), generation_(generation), offset_(offset) {}
  void release() noexcept;
  int descriptor_ = -1;
  std::uint64_t generation_ = 0; // of forks: a child holds nothing that its parent held
  std::int64_t offset_ = 0;
};

using Warn = std::function<void(std::string_view sentence)>;

class Store {
public:
  // Touches no file before the first get, put or lock. `warn` receives at most one sentence per store.
  Store(Location location, Warn warn);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  std::optional<Entry> get(const Key& key);
  // True when it is in the store now. Replaces an entry of the same key. Memory-only stores keep it in the process; so
  // does one whose file cannot take it, but answers false. The file is kept below BILOGP_CACHE_MAX_BYTES (256 MB) by
  // dropping the entries put first.
  bool put(const Key& key, const Metadata& metadata, std::string_view payload);
  // Removes one entry; used for a blob whose checksum holds but that does not load.
  void erase(const Key& key);
  // Waits (bounded) until this process may compile `key`; an unheld lock means: go on, at worst twice the work.
  KeyLock lock(const Key& key);

  // The same as `get` etc. but for tools: failures are thrown as bilogp::Error of kind cache or io with a sentence.
  std::vector<ListedEntry> list();
  // `check` says whether a payload is usable beyond its checksum (for a kernel image: that it maps).
  VerifyReport verify(const std::function<bool(const ListedEntry&, std::string_view payload)>& check);
  // Removes all entries and gives the space back; returns how many there were.
  std::int64_t clear();

  [[nodiscard]] const Location& location() const noexcept;
  [[nodiscard]] std::string file() const; // full path of the store's file, empty when memory only
  [[nodiscard]] std::int64_t file_bytes() const;

  struct State; // internal

private:
  std::unique_ptr<State> state_;
};

// The process's own store, at default_location(), opened on first use; never destroyed.
Store& process_store();
// Where process_store's warnings go; set by the runtime before the first use.
void set_process_warn(Warn warn);

} // namespace bilogp::cache
