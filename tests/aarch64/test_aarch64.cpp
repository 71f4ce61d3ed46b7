// AArch64 kernels, run under qemu's user mode, give the bits of the slow reference.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "tests/aarch64/scenario.hpp"

using namespace bilogp;
using namespace bilogp::test;
using reference::Storage;

namespace {

constexpr int skipped = 77;
constexpr Storage storages[] = {Storage::float32, Storage::float16, Storage::bfloat16};

// Runs the job in an emulated process and says what differs, "" when nothing does.
std::string run(const JobBuilder& job) {
  const std::string base =
      (std::filesystem::temp_directory_path() / fmt::format("bilogp-aarch64-{}", getpid())).string();
  const std::string job_path = base + ".job";
  const std::string answer_path = base + ".answer";
  job.write(job_path);
  const std::string command =
      fmt::format("\"{}\" \"{}\" \"{}\" \"{}\"", BILOGP_QEMU, BILOGP_AARCH64_RUNNER, job_path, answer_path);
  const int status = std::system(command.c_str());
  std::string report;
  if (status != 0)
    report =
        WIFEXITED(status) ? fmt::format("the runner exited with {}", WEXITSTATUS(status)) : "the runner was killed";
  else
    report = job.compare(answer_path);
  std::filesystem::remove(job_path);
  std::filesystem::remove(answer_path);
  MESSAGE(job.calls() << " calls, " << job.output_bytes() << " bytes compared");
  return report;
}

void add_all(JobBuilder& job, KernelImages& images, const Scenario& scenario) {
  const std::int64_t columns = scenario.columns;
  ScenarioCalls calls(job, images, scenario);
  calls.add_forward();
  calls.add_backward(false, {columns});
  calls.add_backward(true, {columns});
  if (columns < 5) return;
  calls.add_backward(true, {columns / 3, columns});
  calls.add_shards({columns / 3, columns / 2 + 1, columns});
}

} // namespace

TEST_CASE("rows of every kind and many widths") {
  for (const Storage storage : storages) {
    JobBuilder job;
    KernelImages images(job);
    std::uint64_t seed = 1;
    for (const std::int64_t columns :
         {1, 2, 3, 15, 16, 17, 31, 33, 63, 65, 100, 255, 257, 511, 513, 1000, 1025, 4097, 5000})
      add_all(job, images,
              {.storage = storage,
               .columns = columns,
               .id_dtype = seed % 2 == 0 ? DType::int32 : DType::int64,
               .row_padding = columns % 3,
               .misalignment = seed % 4 == 3 ? 1U : 0U,
               .seed = 100 * seed++});
    CHECK(run(job) == "");
  }
}

TEST_CASE("temperatures, of the call and of rows, and columns that do not count") {
  for (const Storage storage : storages) {
    JobBuilder job;
    KernelImages images(job);
    std::uint64_t seed = 7;
    for (const std::int64_t columns : {5, 33, 300, 1031})
      for (const float temperature : {0.7F, 1e-6F, 30.0F, 0.0F})
        add_all(job, images,
                {.storage = storage,
                 .columns = columns,
                 .vocab_size = columns - (columns > 100 ? 77 : 1),
                 .id_dtype = seed % 2 == 0 ? DType::int32 : DType::int64,
                 .temperature = temperature,
                 .temperature_rows = temperature == 0,
                 .row_padding = 1,
                 .seed = 100 * seed++});
    CHECK(run(job) == "");
  }
}

TEST_CASE("a vocabulary compiled in") {
  JobBuilder job;
  KernelImages images(job);
  for (const Storage storage : storages) {
    ScenarioCalls calls(job, images, {.storage = storage, .columns = 1100, .vocab_size = 1077});
    calls.add_forward(1077);
  }
  CHECK(run(job) == "");
}

TEST_CASE("the caller's rounding and flushing change nothing and are there afterwards") {
  for (const Storage storage : storages) {
    JobBuilder job;
    KernelImages images(job);
    std::uint64_t seed = 3;
    for (const std::uint64_t fpcr :
         {fpcr_flush, fpcr_round_up, fpcr_round_to_zero, fpcr_flush | fpcr_flush_half | fpcr_round_to_zero,
          fpcr_default_nan | fpcr_alternative_half | fpcr_flush})
      for (const float temperature : {1.0F, 0.7F})
        add_all(job, images,
                {.storage = storage, .columns = 555, .temperature = temperature, .fpcr = fpcr, .seed = 100 * seed++});
    CHECK(run(job) == "");
  }
}

int main(int argc, char** argv) {
  if (!std::string_view(BILOGP_AARCH64_MISSING).empty()) {
    std::fprintf(stderr, "skipped: %s\n", BILOGP_AARCH64_MISSING);
    return skipped;
  }
  return doctest::Context(argc, argv).run();
}
