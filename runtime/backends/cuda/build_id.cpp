#include "runtime/backends/cuda/build_id.hpp"

#include <elf.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace bilogp::cuda {
namespace {

constexpr std::size_t shown_bytes = 8;
constexpr std::size_t largest_notes = std::size_t{64} * 1024;

template<class Value> bool read_at(std::ifstream& file, std::uint64_t offset, Value* values, std::size_t count) {
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(values), static_cast<std::streamsize>(count * sizeof(Value)));
  return file.good();
}

std::string build_id_in(const std::vector<char>& notes) {
  const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
  for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    const std::size_t value = at + sizeof note + padded(note.n_namesz);
    if (value > notes.size() || note.n_descsz > notes.size() - value) return {};
    const bool is_gnu = note.n_namesz == 4 && std::memcmp(notes.data() + at + sizeof note, "GNU", 4) == 0;
    if (is_gnu && note.n_type == NT_GNU_BUILD_ID) {
      std::string text;
      for (std::size_t i = 0; i < note.n_descsz && i < shown_bytes; ++i)
        text += fmt::format("{:02x}", static_cast<unsigned char>(notes[value + i]));
      return text;
    }
    at = value + padded(note.n_descsz);
  }
  return {};
}

std::string build_id_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  if (!read_at(file, 0, &header, 1) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    return {};
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!read_at(file, header.e_phoff, segments.data(), segments.size())) return {};
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > largest_notes) continue;
    std::vector<char> notes(segment.p_filesz);
    if (!read_at(file, segment.p_offset, notes.data(), notes.size())) return {};
    if (std::string id = build_id_in(notes); !id.empty()) return id;
  }
  return {};
}

} // namespace

std::string identity_of_library(const std::string& path) {
  if (std::string id = build_id_of(path); !id.empty()) return id;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return {};
  const auto written = std::filesystem::last_write_time(path, error).time_since_epoch();
  return fmt::format("{} bytes of {}", size, std::chrono::duration_cast<std::chrono::seconds>(written).count());
}

} // namespace bilogp::cuda
