#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "bilogp/error.hpp"
#include "runtime/backends/cpu/targets.hpp"

using namespace bilogp;
using namespace bilogp::cpu;

namespace {

std::set<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::set<std::string> result;
  for (std::string word; stream >> word;) result.insert(word);
  return result;
}

std::set<std::string> kernel_flags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags")) return words(line.substr(line.find(':') + 1));
  return {};
}

} // namespace

TEST_CASE("the levels are known by name, in order") {
  CHECK(known_levels() == std::vector<std::string>{"x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"});
  for (const std::string& level : known_levels()) CHECK(resolve_target(level).name == level);
  CHECK(resolve_target("x86-64-v3").triple == "x86_64-unknown-linux-gnu");
  CHECK(resolve_target("x86-64-v3").cpu == "x86-64-v3");
  CHECK(resolve_target("aarch64").triple == "aarch64-unknown-linux-gnu");
  CHECK(resolve_target("aarch64").cpu == "generic");
}

TEST_CASE("a target with extra features has one name, whatever their order") {
  const Target target = resolve_target("x86-64-v4+avx512bf16+avx512fp16");
  CHECK(target.name == "x86-64-v4+avx512fp16+avx512bf16");
  CHECK(target.cpu == "x86-64-v4");
  CHECK(target.features == std::vector<std::string>{"+avx512fp16", "+avx512bf16"});
  CHECK(resolve_target(target.name).name == target.name);
}

TEST_CASE("unknown targets are refused with the known ones") {
  for (const char* name : {"x86-64-v5", "x86-64", "znver4", "x86-64-v4+", "x86-64-v4++avx512fp16", "x86-64-v4+amx",
                           "x86-64-v3+avx512fp16", "x86-64-v4+avx512fp16+avx512fp16", "aarch64+sve", "+", " native"}) {
    CAPTURE(name);
    try {
      resolve_target(name);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::invalid_argument);
      const std::string sentence = error.what();
      CHECK(sentence.find(name) != std::string::npos);
      for (const std::string& level : known_levels()) CHECK(sentence.find(level) != std::string::npos);
    }
  }
}

TEST_CASE("native is a target that runs here and resolves by its own name") {
  const Target native = resolve_target("native");
  CHECK(resolve_target("").name == native.name);
  CHECK(resolve_target(native.name).features == native.features);
  std::string missing = "left over";
  CHECK(runs_here(native, &missing));
  CHECK(missing.empty());
}

#if defined(__x86_64__)
TEST_CASE("the features found are those that Linux reports") {
  const std::map<std::string, std::string> linux_names = {{"cx16", "cx16"},
                                                          {"sahf", "lahf_lm"},
                                                          {"popcnt", "popcnt"},
                                                          {"sse3", "pni"},
                                                          {"ssse3", "ssse3"},
                                                          {"sse4.1", "sse4_1"},
                                                          {"sse4.2", "sse4_2"},
                                                          {"avx", "avx"},
                                                          {"avx2", "avx2"},
                                                          {"bmi", "bmi1"},
                                                          {"bmi2", "bmi2"},
                                                          {"f16c", "f16c"},
                                                          {"fma", "fma"},
                                                          {"lzcnt", "abm"},
                                                          {"movbe", "movbe"},
                                                          {"avx512f", "avx512f"},
                                                          {"avx512bw", "avx512bw"},
                                                          {"avx512cd", "avx512cd"},
                                                          {"avx512dq", "avx512dq"},
                                                          {"avx512vl", "avx512vl"},
                                                          {"avx512bf16", "avx512_bf16"},
                                                          {"avx512fp16", "avx512_fp16"},
                                                          {"avx512vbmi", "avx512vbmi"},
                                                          {"avx512vbmi2", "avx512_vbmi2"}};
  const std::set<std::string> ours = words(host_features());
  const std::set<std::string> theirs = kernel_flags();
  REQUIRE(!theirs.empty());
  for (const auto& [name, flag] : linux_names) {
    CAPTURE(name);
    CHECK(ours.contains(name) == theirs.contains(flag));
  }
  for (const std::string& name : ours) CHECK(linux_names.contains(name));
}

TEST_CASE("what a target lacks here is named") {
  std::string missing;
  CHECK(!runs_here(resolve_target("aarch64"), &missing));
  CHECK(missing == "an AArch64 processor");
  Target made_up = resolve_target("x86-64-v4");
  made_up.features = {"+avx1024"};
  CHECK(!runs_here(made_up, &missing));
  CHECK(words(missing).contains("avx1024"));
  CHECK(!runs_here(made_up));
}
#endif
