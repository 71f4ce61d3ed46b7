// Quotas of control groups, read from trees of files like the kernel's.
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <doctest/doctest.h>

#include "runtime/backends/cpu/cgroup_quota.hpp"

namespace {

class Root {
public:
  Root() : path_(std::filesystem::temp_directory_path() / ("bilogp-cgroup-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Root() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  Root& file(const std::string& name, const std::string& text) {
    const std::filesystem::path whole = path_ / name;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
    return *this;
  }
  [[nodiscard]] int quota() const { return bilogp::cpu::cgroup_quota(path_.string()); }

private:
  std::filesystem::path path_;
};

} // namespace

TEST_SUITE_BEGIN("cgroup quota");

TEST_CASE("no control groups, no quota") {
  CHECK(Root().quota() == 0);
}

TEST_CASE("version 2: the least of a group and those above it, rounded up") {
  Root root;
  root.file("proc/self/cgroup", "0::/jobs/mine\n");
  CHECK(root.quota() == 0);
  CHECK(root.file("sys/fs/cgroup/jobs/mine/cpu.max", "max 100000\n").quota() == 0);
  CHECK(root.file("sys/fs/cgroup/jobs/mine/cpu.max", "350000 100000\n").quota() == 4);
  CHECK(root.file("sys/fs/cgroup/jobs/cpu.max", "200000 100000\n").quota() == 2);
  CHECK(root.file("sys/fs/cgroup/cpu.max", "50000 100000\n").quota() == 1);
}

TEST_CASE("version 2 in a container, where the group is the mount itself") {
  CHECK(Root().file("proc/self/cgroup", "0::/\n").file("sys/fs/cgroup/cpu.max", "150000 100000\n").quota() == 2);
  CHECK(
      Root().file("proc/self/cgroup", "0::/outside/of/it\n").file("sys/fs/cgroup/cpu.max", "300000 100000\n").quota() ==
      3);
}

TEST_CASE("version 1") {
  Root root;
  root.file("proc/self/cgroup", "5:cpu,cpuacct:/mine\n4:memory:/mine\n1:cpuset:/other\n");
  root.file("sys/fs/cgroup/cpu,cpuacct/mine/cpu.cfs_period_us", "100000\n");
  CHECK(root.file("sys/fs/cgroup/cpu,cpuacct/mine/cpu.cfs_quota_us", "-1\n").quota() == 0);
  CHECK(root.file("sys/fs/cgroup/cpu,cpuacct/mine/cpu.cfs_quota_us", "250000\n").quota() == 3);
}

TEST_CASE("what cannot be understood is no quota") {
  for (const char* text : {"", "garbage", "-5 100000", "100000", "100000 0", "1e5x 100000", "nan 100000"})
    CHECK_MESSAGE(
        Root().file("proc/self/cgroup", "0::/\nnonsense\n7:\n").file("sys/fs/cgroup/cpu.max", text).quota() == 0, text);
  CHECK(Root().file("proc/self/cgroup", "0::/\n").file("sys/fs/cgroup/cpu.max", "1e300 1").quota() > 1000000);
}

TEST_SUITE_END();
