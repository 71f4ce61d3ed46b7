// Runs a program as a child and collects what it says.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bilogp::test {

struct ChildOptions {
  std::map<std::string, std::string> environment = {}; // on top of this process's
  std::optional<long> largest_file = {};               // RLIMIT_FSIZE: writing beyond fails as on a full disk
  bool obey_permissions = false;                       // root too
  std::string stdout_path = {};                        // instead of collecting it
  std::string stderr_path = {};
  std::vector<int> closed = {}; // descriptors that the program starts without
};

struct ChildResult {
  int exit_code = -1; // 128 + the signal, as in a shell
  std::string out;
  std::string err;
  long peak_kib = 0; // the most memory it had at a time
};

// Throws std::runtime_error when no child can be started.
ChildResult run_child(const std::vector<std::string>& command, const ChildOptions& options = {});

} // namespace bilogp::test
