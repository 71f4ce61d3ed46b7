// Without a device: every template compiles for every architecture that NVRTC knows, and what it made is as written.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cuda/kernels.hpp"
#include "runtime/backends/cuda/nvrtc.hpp"
#include "runtime/backends/cuda/plans.hpp"
#include "tests/cuda/sass.hpp"

namespace {

namespace cuda = bilogp::cuda;
using bilogp::DType;
using bilogp::Numerics;
using bilogp::Operator;
using bilogp::Specialization;

struct Task {
  Specialization spec;
  cuda::Target target;
};

constexpr Operator operators[] = {Operator::logp_forward, Operator::logp_backward, Operator::logp_partial,
                                  Operator::logp_finish, Operator::logp_with_gradient};

// All, or those that BILOGP_TEST_ARCHITECTURES names ("sm_75 sm_90a").
std::vector<cuda::Target> known_to_nvrtc() {
  const char* const wanted = std::getenv("BILOGP_TEST_ARCHITECTURES");
  std::vector<cuda::Target> targets;
  for (const std::string& name : cuda::known_targets()) {
    if (wanted != nullptr && std::string_view(wanted).find(name) == std::string_view::npos) continue;
    const cuda::Target target = cuda::resolve_target(name);
    if (!cuda::code_for(target, cuda::nvrtc().archs).is_ptx) targets.push_back(target);
  }
  return targets;
}

// Every operator and plan: in bfloat16 for all architectures, in all dtypes, native and with 32-bit ids for those whose
// plans differ (the oldest without bulk copies, and Hopper).
std::vector<Task> tasks_for(const cuda::Target& target) {
  const bool looked_at_closely =
      target.capability == cuda::oldest_capability || target.capability == cuda::bulk_copy_capability;
  std::vector<Task> tasks;
  for (const Operator op : operators)
    for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32})
      for (const std::uint8_t variant : cuda::variants_of(op, target.capability)) {
        if (op == Operator::logp_finish && dtype != DType::bfloat16) continue; // never looks at it
        if (!looked_at_closely && dtype != DType::bfloat16) continue;
        Specialization spec{op, dtype, DType::int64, 0, Numerics::portable, variant};
        if (op == Operator::logp_forward || op == Operator::logp_with_gradient) spec.vocab_size = 128256;
        tasks.push_back({spec, target});
        if (dtype == DType::float16 || !looked_at_closely) continue;
        spec.numerics = Numerics::native;
        spec.id_dtype = DType::int32;
        tasks.push_back({spec, target});
      }
  return tasks;
}

// Runs `check(task, compiled)` over all tasks on all cores; what it says, one line per task that it complains about.
std::vector<std::string> run(const std::vector<Task>& tasks,
                             const std::function<std::string(const Task&, const cuda::CompiledImage&)>& check) {
  std::vector<std::string> complaints;
  std::mutex mutex;
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      std::string said;
      try {
        said = check(tasks[i], cuda::compile(cuda::compile_request(tasks[i].spec, tasks[i].target)));
      } catch (const cuda::ClustersNotCompiled& error) {
        if (cuda::nvrtc().version != "12.0") said = error.what(); // which has all plans but those
      } catch (const std::exception& error) {
        said = error.what();
      }
      if (said.empty()) continue;
      const std::scoped_lock lock(mutex);
      complaints.push_back(fmt::format("{} for {}: {}", describe(tasks[i].spec), tasks[i].target.name, said));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::max(1U, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return complaints;
}

std::string listed(const std::vector<std::string>& found) {
  if (found.empty()) return {};
  return fmt::format("{} instructions, as \"{}\"", found.size(), found.front());
}

std::string check_image(const Task& task, const cuda::CompiledImage& compiled) {
  const bool is_portable = task.spec.numerics == Numerics::portable;
  if (is_portable)
    if (std::string said = listed(cuda_test::loose_instructions(compiled.ptx)); !said.empty()) return "in PTX " + said;
  if (is_portable && task.spec.variant == 0 && compiled.ptx.find(".ftz.") != std::string::npos)
    return "the plain plan flushes";
  if (cuda_test::disassembler().empty()) return {};
  const std::string sass = cuda_test::disassemble(compiled.image);
  if (const std::size_t spills = cuda_test::local_memory_instructions(sass); spills > 0)
    return fmt::format("{} loads and stores of local memory", spills);
  return is_portable ? listed(cuda_test::inexact_instructions(sass)) : "";
}

} // namespace

TEST_CASE("every template compiles for every architecture, rounds as written and spills nothing") {
  if (cuda_test::disassembler().empty()) MESSAGE("skipped: the machine code is not looked at, there is no nvdisasm");
  std::size_t count = 0;
  for (const cuda::Target& target : known_to_nvrtc()) {
    const std::vector<Task> tasks = tasks_for(target);
    count += tasks.size();
    for (const std::string& complaint : run(tasks, check_image)) FAIL_CHECK(complaint);
  }
  MESSAGE("compiled " << count << " kernels with NVRTC " << cuda::nvrtc().version);
  CHECK(count > 0);
}

// PTX of sm_90a would run nowhere else; that of sm_90 does.
TEST_CASE("Hopper's plans need nothing that its own suffix gives: a newer device gets their PTX from an older NVRTC") {
  const cuda::Target newer{"sm_91", cuda::bulk_copy_capability + 1};
  CHECK(cuda::code_for(newer, cuda::nvrtc().archs).architecture == "compute_90");
  std::vector<Task> tasks;
  for (const Operator op : operators)
    for (const std::uint8_t variant : cuda::variants_of(op, newer.capability))
      tasks.push_back({{op, DType::bfloat16, DType::int64, 0, Numerics::portable, variant},
                       {"sm_90", cuda::bulk_copy_capability}}); // to the end: PTX alone is not looked at closely
  for (const std::string& complaint : run(tasks, [](const Task&, const cuda::CompiledImage&) { return std::string(); }))
    FAIL_CHECK(complaint);
}

TEST_CASE("a template that does not compile is named with its line and NVRTC's words") {
  cuda::CompileRequest request =
      cuda::compile_request({Operator::logp_finish, DType::float32, DType::int64}, cuda::resolve_target("sm_80"));
  const std::string broken = std::string(request.files.front().text) + "\nint wrong = \"text\" * 2;\n";
  const auto lines = std::count(request.files.front().text.begin(), request.files.front().text.end(), '\n');
  request.files.front().text = broken;
  std::string said;
  try {
    cuda::compile(request);
  } catch (const bilogp::Error& error) {
    said = error.what();
    CHECK(error.kind() == bilogp::ErrorKind::compile_failed);
  }
  CAPTURE(said);
  CHECK(said.find(fmt::format("logp_finish.kernel({})", lines + 2)) != std::string::npos);
  CHECK(said.find("sm_80") != std::string::npos);
}

TEST_CASE("the checks see what they look for") {
  CHECK(cuda_test::loose_instructions("\tmul.rn.f32 \t%f1, %f2, %f3;\n\tfma.rn.f32 %f1, %f1, %f1, %f1;\n").empty());
  CHECK(cuda_test::loose_instructions("\tmul.f32 \t%f1, %f2, %f3;\n\tex2.approx.ftz.f32 %f1, %f2;\n").size() == 2);
  CHECK(cuda_test::loose_instructions("\tadd.rn.ftz.f32 \t%f1, %f2, %f3;\n\tfma.rn.ftz.f32 %f1, %f1, %f1, %f1;\n")
            .size() == 1);
  CHECK(cuda_test::inexact_instructions("  MUFU.RCP R1, R2 ;\n  MUFU.RSQ R1, -QNAN ;\n  FFMA R1, R2, R3, R4 ;\n")
            .empty());
  CHECK(cuda_test::inexact_instructions("  MUFU.EX2 R1, R2 ;\n  MUFU.RSQ R1, R3 ;\n").size() == 2);
  CHECK(cuda_test::local_memory_instructions("  STL [R1], R2 ;\n  LDL.64 R1, [R2] ;\n  LDG.E R1, [R2] ;\n") == 2);
}

int main(int argc, char** argv) {
  // What fetch_tools.sh fetched, unless another NVRTC is named.
  ::setenv("BILOGP_NVRTC", BILOGP_TEST_CUDA_TOOLS "/site/nvidia/cu13/lib", 0);
  if (!cuda::nvrtc_status().found) ::unsetenv("BILOGP_NVRTC");
  const cuda::NvrtcStatus status = cuda::nvrtc_status();
  if (!status.found) {
    std::printf("skipped: there is no NVRTC to compile with (`make cuda-tools` fetches it): %s\n",
                status.reason.c_str());
    return 0;
  }
  return doctest::Context(argc, argv).run();
}
