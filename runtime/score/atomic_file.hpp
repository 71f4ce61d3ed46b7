// A file that appears under its name only when it is whole.
//
// Thread-safety: one owner; one AtomicFile per process at a time is removed on an interrupting signal as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace bilogp::score {

class AtomicFile {
public:
  // Creates a temporary file beside `path`; where that is a symbolic link, beside what it leads to, which is then the
  // file that is written. Throws Error(io) when that cannot be done, or when `path` is there and is not a regular file.
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile(); // removes the temporary file unless committed

  // Claims the space that the whole will need, so that a full disk is found before the work, not after it.
  void reserve(std::int64_t bytes);
  void write_at(std::int64_t offset, std::span<const std::byte> bytes);
  void append(std::string_view text);
  // Flushes to the disk and takes the final name, replacing a file that had it.
  void commit();

private:
  [[noreturn]] void fail(int error) const;

  std::string path_; // as it was given, for messages
  std::string final_path_;
  std::string temporary_;
  int file_ = -1;
  std::int64_t size_ = 0; // of what was appended
};

} // namespace bilogp::score
