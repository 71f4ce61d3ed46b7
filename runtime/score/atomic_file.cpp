#include "runtime/score/atomic_file.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bilogp/error.hpp"
#include "runtime/score/file_tensor.hpp"

namespace bilogp::score {
namespace {

// What the signal handler removes. It is set while no handler is installed.
char interrupted_file[4096];
constexpr int fatal_signals[] = {SIGINT, SIGTERM, SIGHUP};

void remove_and_die(int signal) {
  ::unlink(interrupted_file);
  // SA_RESETHAND has restored the default action; the signal ends the process when the handler returns.
  ::raise(signal);
}

void watch_signals(const std::string& temporary) {
  if (temporary.size() >= sizeof(interrupted_file)) return;
  std::memcpy(interrupted_file, temporary.c_str(), temporary.size() + 1);
  struct sigaction action{};
  action.sa_handler = remove_and_die;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  struct sigaction before{};
  for (const int signal : fatal_signals) {
    ::sigaction(signal, nullptr, &before);
    // Who started us may have chosen that we outlive the signal (nohup).
    if (before.sa_handler == SIG_DFL) ::sigaction(signal, &action, nullptr);
  }
}

// Where writing to `path` would end up, whether or not there is a file.
std::filesystem::path behind_links(std::filesystem::path path) {
  std::error_code error;
  constexpr int most_links = 40; // as the kernel's own limit; the file is not found when there are more
  for (int links = 0; links < most_links; ++links) {
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) break; // no link
    path = path.parent_path() / target;
  }
  return path;
}

void unwatch_signals() {
  struct sigaction before{};
  for (const int signal : fatal_signals) {
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == remove_and_die) ::signal(signal, SIG_DFL);
  }
}

} // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  const auto refuse = [&](const char* why) {
    throw Error(ErrorKind::io, fmt::format("cannot write {}: {}", in_quotes(path), why));
  };
  struct stat status{};
  const bool is_there = ::stat(path.c_str(), &status) == 0;
  if (is_there && !S_ISREG(status.st_mode)) refuse("it is there and is not a regular file");
  if (!is_there && errno != ENOENT) refuse(std::strerror(errno));
  const std::filesystem::path final_path = behind_links(path);
  final_path_ = final_path.string();
  std::random_device random;
  for (int attempt = 0; file_ < 0 && attempt < 100; ++attempt) {
    const auto name = fmt::format(".{}.{:08x}.tmp", final_path.filename().string(), random());
    temporary_ = (final_path.parent_path() / name).string();
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0 && errno != EEXIST) break;
  }
  if (file_ < 0) refuse(std::strerror(errno));
  watch_signals(temporary_);
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) {
    ::close(file_);
    ::unlink(temporary_.c_str());
  }
  unwatch_signals();
}

void AtomicFile::fail(int error) const {
  throw Error(ErrorKind::io,
              fmt::format("cannot write {}: {}; no part of it was kept", in_quotes(path_), std::strerror(error)));
}

void AtomicFile::reserve(std::int64_t bytes) {
  if (bytes == 0) return;
  int result = 0;
  do {
    result = ::fallocate(file_, 0, 0, bytes);
  } while (result != 0 && errno == EINTR);
  // Some file systems cannot; then writing finds out.
  if (result != 0 && (errno == ENOSPC || errno == EFBIG || errno == EDQUOT || errno == EIO)) fail(errno);
}

void AtomicFile::write_at(std::int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += written;
  }
}

void AtomicFile::append(std::string_view text) {
  write_at(size_, std::as_bytes(std::span(text.data(), text.size())));
  size_ += static_cast<std::int64_t>(text.size());
}

void AtomicFile::commit() {
  if (::fsync(file_) != 0) fail(errno);
  // Network file systems may report a full disk only here.
  if (::close(std::exchange(file_, -1)) != 0 || ::rename(temporary_.c_str(), final_path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    fail(error);
  }
  // The name itself is safe only when its directory is on the disk; where that cannot be asked for, it is not an error.
  const auto parent = std::filesystem::path(final_path_).parent_path().string();
  const int directory = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  ::fsync(directory);
  ::close(directory);
}

} // namespace bilogp::score
