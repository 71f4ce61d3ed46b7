// Questions about directories, asked without changing anything, and making private ones.
#pragma once

#include <string>

#include <sys/types.h>

namespace bilogp::cache {

std::string existing_ancestor(const std::string& path); // path itself or the nearest parent that exists; "/" at last
bool is_directory(const std::string& path);

// A store there could be written, or holds a file that can be read.
bool store_could_live_in(const std::string& directory, const std::string& file_name);

// Lies, or would lie, on NFS, SMB, Lustre, GPFS, Ceph, FUSE, 9P and the like, by the magic number of statfs.
bool is_on_network(const std::string& path);
bool is_network_magic(unsigned long magic);

// Why `path`, if it exists, is not a directory (no link) of `user` that nobody else may enter; empty when it is or
// when there is nothing yet.
std::string why_not_private(const std::string& path, uid_t user);

// Makes a directory and its missing parents, 0700 each; existing ones are left as they are. 0 or errno.
int make_directories(const std::string& path);

} // namespace bilogp::cache
