// A file mapped read-only, and what the kernel is told about parts of it.
//
// Thread-safety: a MappedFile may be read from any thread; moving one is the owner's business.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace bilogp::score {

class MappedFile {
public:
  // Throws Error(io) naming the path when it cannot be opened or mapped, or is not a regular file. An empty file maps
  // as no bytes.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Starts reading a part of a mapping in the background.
void start_reading(std::span<const std::byte> part) noexcept;

// Waits until a part of a mapping is in memory. Throws Error(io) when the file cannot be read there, for instance
// because it became shorter after it was opened; without this, touching it would kill the process.
void finish_reading(std::span<const std::byte> part);

// Says that a part will not be looked at again, so that a long file does not fill the memory.
void forget(std::span<const std::byte> part) noexcept;

} // namespace bilogp::score
