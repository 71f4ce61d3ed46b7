#include "runtime/backends/cpu/cgroup_quota.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

namespace bilogp::cpu {
namespace {

constexpr double no_quota = std::numeric_limits<double>::infinity();

double processors(double quota, double period) {
  return quota > 0 && period > 0 ? quota / period : no_quota;
}

// cpu.max of version 2: "max 100000" or "150000 100000".
double quota_of_unified(const std::string& directory) {
  std::ifstream file(directory + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max") return no_quota;
  std::istringstream number(quota);
  double microseconds = 0;
  return number >> microseconds && number.eof() ? processors(microseconds, period) : no_quota;
}

// Version 1 has two files; a quota of -1 is none.
double quota_of_controller(const std::string& directory) {
  std::ifstream quota_file(directory + "/cpu.cfs_quota_us");
  std::ifstream period_file(directory + "/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  return quota_file >> quota && period_file >> period ? processors(quota, period) : no_quota;
}

// The group and all above it: each may be narrower than the ones below. Inside a container the path may lead out of
// what is mounted; then only the mount itself is found, which is the container's own group.
template<class Quota> double least_quota(const std::string& mount, std::string path, Quota quota_of) {
  double least = quota_of(mount);
  while (path.size() > 1) {
    least = std::min(least, quota_of(mount + path));
    path.resize(path.rfind('/'));
  }
  return least;
}

// Lines of /proc/self/cgroup: "0::/a/b" (version 2), "4:cpu,cpuacct:/a/b" (version 1).
struct Membership {
  std::string controllers, path;
};
std::optional<Membership> parsed(const std::string& line) {
  const std::size_t first = line.find(':');
  const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
  if (second == std::string::npos) return std::nullopt;
  return Membership{line.substr(first + 1, second - first - 1), line.substr(second + 1)};
}

bool names_cpu(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');)
    if (name == "cpu") return true;
  return false;
}

} // namespace

int cgroup_quota(const std::string& root) {
  double least = no_quota;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto membership = parsed(line);
    if (!membership) continue;
    const std::string mount = root + "/sys/fs/cgroup";
    if (membership->controllers.empty())
      least = std::min(least, least_quota(mount, membership->path, quota_of_unified));
    else if (names_cpu(membership->controllers))
      for (const char* controller : {"/cpu", "/cpu,cpuacct"})
        least = std::min(least, least_quota(mount + controller, membership->path, quota_of_controller));
  }
  if (least == no_quota) return 0;
  const double most = std::numeric_limits<int>::max();
  const double whole = std::min(least, most - 1);
  const int down = static_cast<int>(whole);
  return std::max(1, down + (whole > down ? 1 : 0));
}

} // namespace bilogp::cpu
