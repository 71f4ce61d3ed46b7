// Byte-range locks on the file `kernels-v1.db.lock` beside the store, which is created on demand and never removed:
// removing it would let two processes hold "the" lock on two files. One byte per key, at an offset from its hash.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cache/key.hpp"
#include "cache/store.hpp"

namespace bilogp::cache {

// Longer than any compile; a holder that was stopped must not stop the others for ever.
inline constexpr std::chrono::milliseconds key_lock_limit{120'000};
// Held while a damaged file is set aside.
inline constexpr std::int64_t store_lock_offset = std::int64_t{1} << 62;

std::int64_t lock_offset(const Hash128& key); // below store_lock_offset

// Waits up to `limit`. Unheld when the time is over, the file cannot be opened for writing or its file system has no
// such locks.
KeyLock lock_range(const std::string& path, std::int64_t offset, std::chrono::milliseconds limit);

} // namespace bilogp::cache
