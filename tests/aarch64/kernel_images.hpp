// AArch64 kernel images for a job, compiled here or taken from the store.
#pragma once

#include <vector>

#include "bilogp/specialization.hpp"
#include "tests/aarch64/job_builder.hpp"

namespace bilogp::test {

class KernelImages {
public:
  explicit KernelImages(JobBuilder& job) : job_(job) {}
  // The index of this kernel's image in the job.
  std::uint64_t index(const Specialization& spec);

private:
  JobBuilder& job_;
  std::vector<std::pair<Specialization, std::uint64_t>> known_;
};

} // namespace bilogp::test
