#include "runtime/score/mapped_file.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bilogp/error.hpp"
#include "runtime/score/file_tensor.hpp"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace bilogp::score {
namespace {

[[noreturn]] void throw_cannot_read(const std::string& path, int error) {
  throw Error(ErrorKind::io, fmt::format("cannot read {}: {}", in_quotes(path), std::strerror(error)));
}

struct Descriptor {
  int value = -1;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

int advise(std::span<const std::byte> part, int advice) noexcept {
  if (part.empty()) return 0;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data()) & ~(page - 1);
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size());
  return ::madvise(reinterpret_cast<void*>(begin), end - begin, advice) == 0 ? 0 : errno;
}

} // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0) throw_cannot_read(path, errno);
  struct stat status{};
  if (::fstat(file.value, &status) != 0) throw_cannot_read(path, errno);
  if (!S_ISREG(status.st_mode))
    throw Error(ErrorKind::io,
                fmt::format("cannot read {}: it is not a regular file, which mapping needs", in_quotes(path)));
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* const mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.value, 0);
  if (mapped == MAP_FAILED) throw_cannot_read(path, errno);
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void start_reading(std::span<const std::byte> part) noexcept {
  advise(part, MADV_WILLNEED);
}

void finish_reading(std::span<const std::byte> part) {
  int error = EAGAIN;
  while (error == EAGAIN || error == EINTR) error = advise(part, MADV_POPULATE_READ);
  // Kernels before 5.14 do not know the advice; there the pages come in when they are touched.
  if (error != 0 && error != EINVAL)
    throw Error(ErrorKind::io, "the file could not be read to its end while its rows were scored: it became shorter or "
                               "its disk failed");
}

void forget(std::span<const std::byte> part) noexcept {
  // Pages shared with a neighbouring part come back from the page cache when they are touched again.
  advise(part, MADV_DONTNEED);
}

} // namespace bilogp::score
