// How many processors' worth of time the control groups of this process allow it.
#pragma once

#include <string>

namespace bilogp::cpu {

// The least quota of the process's groups and those above them, in processors, rounded up; 0 where there is none, and
// where files cannot be read or understood. `root` comes before /proc and /sys, for tests.
int cgroup_quota(const std::string& root = "");

} // namespace bilogp::cpu
