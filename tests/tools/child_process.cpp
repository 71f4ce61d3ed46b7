#include "tests/tools/child_process.hpp"

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bilogp::test {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    read_end = ends[0];
    write_end = ends[1];
  }
  ~Pipe() {
    ::close(read_end);
    if (write_end >= 0) ::close(write_end);
  }
};

[[noreturn]] void become(const std::vector<std::string>& command, const ChildOptions& options, int out, int err) {
  if (!options.stdout_path.empty()) out = ::open(options.stdout_path.c_str(), O_WRONLY);
  if (!options.stderr_path.empty()) err = ::open(options.stderr_path.c_str(), O_WRONLY);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (options.largest_file) {
    const rlimit limit{static_cast<rlim_t>(*options.largest_file), static_cast<rlim_t>(*options.largest_file)};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (options.obey_permissions) {
    // Only root has them to drop.
    ::prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0);
    ::prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH, 0, 0, 0);
  }
  for (const int descriptor : options.closed) ::close(descriptor);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

void collect(Pipe& out, Pipe& err, ChildResult& result) {
  std::array<pollfd, 2> watched{{{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}}};
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    ::poll(watched.data(), watched.size(), -1);
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      std::array<char, 65536> buffer{};
      const ssize_t got = ::read(watched[i].fd, buffer.data(), buffer.size());
      if (got <= 0)
        watched[i].fd = -1;
      else
        (i == 0 ? result.out : result.err).append(buffer.data(), static_cast<std::size_t>(got));
    }
  }
}

} // namespace

ChildResult run_child(const std::vector<std::string>& command, const ChildOptions& options) {
  Pipe out;
  Pipe err;
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no child process");
  if (child == 0) become(command, options, out.write_end, err.write_end);
  ::close(std::exchange(out.write_end, -1));
  ::close(std::exchange(err.write_end, -1));
  ChildResult result;
  collect(out, err, result);
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  result.peak_kib = usage.ru_maxrss;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

} // namespace bilogp::test
