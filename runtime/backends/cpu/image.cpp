#include "runtime/backends/cpu/image.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "bilogp/error.hpp"

namespace bilogp::cpu {
namespace {

constexpr std::string_view magic = "BLGPIMG1";
constexpr std::size_t name_bytes = 48, entry_bytes = name_bytes + 8, header_bytes = 8 + 4 + 4 + 8;
constexpr std::uint64_t largest_code = 1ULL << 30; // far above any kernel; a garbled size is refused early

#if defined(__aarch64__)
constexpr std::uint32_t own_machine = machine_aarch64;
#else
constexpr std::uint32_t own_machine = machine_x86_64;
#endif

template<class Word> void append_word(std::string& out, Word value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

template<class Word> Word word_at(std::string_view bytes, std::size_t at) {
  Word value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value |= static_cast<Word>(static_cast<Word>(static_cast<unsigned char>(bytes[at + i])) << (8 * i));
  return value;
}

[[noreturn]] void bad_image(const std::string& why) {
  throw Error(ErrorKind::cache, "not a kernel image: " + why + "; it should be compiled again");
}

std::string_view entry_name(std::string_view field) {
  const std::string_view name = field.substr(0, field.find('\0'));
  if (name.empty() || name.size() == field.size()) bad_image("an entry has no name");
  if (field.find_first_not_of('\0', name.size()) != std::string_view::npos) bad_image("an entry's name is damaged");
  return name;
}

std::string system_reason() {
  return std::generic_category().message(errno);
}

} // namespace

std::string encode_image(std::uint32_t machine, std::span<const ImageEntry> entries, std::string_view code) {
  std::string out(magic);
  append_word<std::uint32_t>(out, machine);
  append_word<std::uint32_t>(out, static_cast<std::uint32_t>(entries.size()));
  append_word<std::uint64_t>(out, code.size());
  for (const ImageEntry& entry : entries) {
    if (entry.name.size() >= name_bytes) bad_image("the entry name \"" + entry.name + "\" is too long");
    std::string name = entry.name;
    name.resize(name_bytes, '\0');
    out += name;
    append_word<std::uint64_t>(out, entry.offset);
  }
  out += code;
  decode_image(out); // throws for what no reader would take
  return out;
}

DecodedImage decode_image(std::string_view bytes) {
  if (bytes.size() < header_bytes) bad_image("it has " + std::to_string(bytes.size()) + " bytes, less than a header");
  if (bytes.substr(0, magic.size()) != magic) bad_image("its first bytes are not " + std::string(magic));
  DecodedImage image;
  image.machine = word_at<std::uint32_t>(bytes, 8);
  const std::uint64_t count = word_at<std::uint32_t>(bytes, 12);
  const auto code_size = word_at<std::uint64_t>(bytes, 16);
  if (code_size == 0 || code_size > largest_code) bad_image("its code size is out of range");
  if (count == 0 || count > (bytes.size() - header_bytes) / entry_bytes) bad_image("its entry count is out of range");
  const std::size_t code_at = header_bytes + static_cast<std::size_t>(count) * entry_bytes;
  if (bytes.size() - code_at != code_size) bad_image("its size does not match its header");
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t entry_at = header_bytes + i * entry_bytes;
    const std::string_view name = entry_name(bytes.substr(entry_at, name_bytes));
    const auto offset = word_at<std::uint64_t>(bytes, entry_at + name_bytes);
    if (offset >= code_size) bad_image("an entry lies outside of the code");
    for (const ImageEntry& other : image.entries)
      if (other.name == name) bad_image("two entries have one name");
    image.entries.push_back({std::string(name), offset});
  }
  image.code = bytes.substr(code_at);
  return image;
}

MappedImage::MappedImage(std::string_view bytes) {
  DecodedImage image = decode_image(bytes);
  if (image.machine != own_machine) bad_image("it is for machine " + std::to_string(image.machine));
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t size = (image.code.size() + page - 1) / page * page;
  void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    throw Error(ErrorKind::out_of_memory,
                "cannot map " + std::to_string(size) + " bytes of memory for a kernel: " + system_reason());
  std::memcpy(base, image.code.data(), image.code.size());
  if (mprotect(base, size, PROT_READ | PROT_EXEC) != 0) {
    const bool no_memory = errno == ENOMEM;
    const std::string why = system_reason();
    munmap(base, size);
    if (no_memory) throw Error(ErrorKind::out_of_memory, "cannot make the memory of a kernel executable: " + why);
    throw Error(ErrorKind::unsupported,
                "the system refuses executable memory (" + why +
                    "), which kernels need; allow it for this process, for example in its SELinux or seccomp policy");
  }
  auto* code = static_cast<char*>(base);
  __builtin___clear_cache(code, code + size); // data and instruction caches are separate on AArch64
  base_ = base;
  size_ = size;
  entries_ = std::move(image.entries);
}

MappedImage::~MappedImage() {
  if (base_ != nullptr) munmap(base_, size_);
}

void* MappedImage::entry(std::string_view name) const noexcept {
  for (const ImageEntry& entry : entries_)
    if (entry.name == name) return static_cast<char*>(base_) + entry.offset;
  return nullptr;
}

} // namespace bilogp::cpu
