#include "cache/directory.hpp"

#include <cerrno>

#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace bilogp::cache {

namespace {

std::string parent_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

} // namespace

bool is_directory(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string existing_ancestor(const std::string& path) {
  std::string place = path;
  struct stat status;
  while (place != "/" && place != "." && ::stat(place.c_str(), &status) != 0) place = parent_of(place);
  return place;
}

bool store_could_live_in(const std::string& directory, const std::string& file_name) {
  const std::string place = existing_ancestor(directory);
  if (is_directory(place) && ::access(place.c_str(), W_OK | X_OK) == 0) return true;
  return place == directory && ::access((directory + '/' + file_name).c_str(), R_OK) == 0;
}

bool is_network_magic(unsigned long magic) {
  switch (magic & 0xffffffffUL) {
  case 0x6969:     // NFS
  case 0x517b:     // SMB 1
  case 0xff534d42: // CIFS
  case 0xfe534d42: // SMB 2 and 3
  case 0x0bd00bd0: // Lustre
  case 0x47504653: // GPFS
  case 0x00c36400: // Ceph
  case 0x65735546: // FUSE
  case 0x01021997: // 9P
  case 0x19830326: // BeeGFS
  case 0x5346414f: // AFS
  case 0x6b414653: // kAFS
  case 0x73757245: // Coda
  case 0x7461636f: // OCFS2
  case 0x01161970: // GFS2
    return true;
  default:
    return false;
  }
}

bool is_on_network(const std::string& path) {
  struct statfs status;
  if (::statfs(existing_ancestor(path).c_str(), &status) != 0) return false;
  return is_network_magic(static_cast<unsigned long>(status.f_type));
}

std::string why_not_private(const std::string& path, uid_t user) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0) return errno == ENOENT ? "" : "it cannot be looked at";
  if (S_ISLNK(status.st_mode)) return "it is a symbolic link";
  if (!S_ISDIR(status.st_mode)) return "it is not a directory";
  if (status.st_uid != user) return "it belongs to another user";
  if ((status.st_mode & 077) != 0) return "others may enter it";
  return "";
}

int make_directories(const std::string& path) {
  if (is_directory(path)) return 0;
  if (path == "/" || path == ".") return ENOENT;
  if (const int error = make_directories(parent_of(path)); error != 0) return error;
  if (::mkdir(path.c_str(), 0700) == 0 || is_directory(path)) return 0; // another process may have been faster
  return errno == EEXIST ? ENOTDIR : errno;
}

} // namespace bilogp::cache
