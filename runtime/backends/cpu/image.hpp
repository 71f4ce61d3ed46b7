// A kernel image: position-independent machine code with its read-only data, entry points by name, no imports, no
// absolute relocations, no writable data. Mapping one (copy, then read + execute) needs no LLVM and serves fresh and
// stored kernels alike.
//
// Bytes of an image, little-endian:
//   image  = magic "BLGPIMG1" machine:u32 entry_count:u32 code_size:u64 *entry code
//   entry  = name:48 bytes zero-padded, offset:u64 into code
//   code   = code_size bytes; the mapping is aligned to a page, offsets inside keep their alignment
//   machine = ELF e_machine (62 x86-64, 183 AArch64)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bilogp::cpu {

constexpr std::uint32_t machine_x86_64 = 62;
constexpr std::uint32_t machine_aarch64 = 183;

struct ImageEntry {
  std::string name;
  std::uint64_t offset = 0;
};

std::string encode_image(std::uint32_t machine, std::span<const ImageEntry> entries, std::string_view code);

struct DecodedImage {
  std::uint32_t machine = 0;
  std::vector<ImageEntry> entries;
  std::string_view code; // into the bytes given
};

// Throws Error(cache) with one sentence when the bytes are not a whole, consistent image.
DecodedImage decode_image(std::string_view bytes);

// Executable memory of one image. Not copyable; unmapped by the destructor (the kernel table never destroys one).
class MappedImage {
public:
  // Throws Error(cache) for a bad image or another machine's, Error(out_of_memory) or Error(unsupported) when the
  // system refuses executable memory.
  explicit MappedImage(std::string_view bytes);
  ~MappedImage();
  MappedImage(MappedImage&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), size_(other.size_), entries_(std::move(other.entries_)) {}
  MappedImage& operator=(MappedImage&&) = delete;
  // Address of an entry point; null when the image has none of that name.
  [[nodiscard]] void* entry(std::string_view name) const noexcept;

private:
  void* base_ = nullptr;
  std::uint64_t size_ = 0;
  std::vector<ImageEntry> entries_;
};

} // namespace bilogp::cpu
