#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bilogp/error.hpp"
#include "runtime/backends/cpu/compiler.hpp"
#include "runtime/backends/cpu/image.hpp"
#include "tests/cpu/test_backend_support.hpp"

using namespace bilogp;
using namespace bilogp::cpu;
using namespace backend_test;

TEST_CASE("a kernel compiled for each level gives the same answers") {
  std::vector<std::string> targets = known_levels();
  targets.emplace_back("native");
  for (const std::string& name : targets) {
    CAPTURE(name);
    const CompileRequest request = small_kernel(name);
    const CompiledImage compiled = compile(request);
    const DecodedImage decoded = decode_image(compiled.image);
    CHECK(decoded.machine == (name == "aarch64" ? machine_aarch64 : machine_x86_64));
    REQUIRE(decoded.entries.size() == 2);
    CHECK(decoded.entries[0].name == "sum");
    CHECK(decoded.entries[1].name == "weight");
    if (!runs_here(request.target)) continue;
    // Twice: at two addresses.
    const MappedImage first(compiled.image), second(compiled.image);
    for (const MappedImage* image : {&first, &second})
      CHECK(answers_are_right(reinterpret_cast<SumFunction>(image->entry("sum"))));
  }
}

TEST_CASE("the levels differ in their instructions") {
  std::set<std::string> images;
  for (const std::string& level : known_levels()) images.insert(compile(small_kernel(level)).image);
  CHECK(images.size() == known_levels().size());
}

TEST_CASE("a kernel compiles to the same image every time, and definitions change it") {
  CompileRequest request = one_file("extern \"C\" __attribute__((visibility(\"default\"))) int f() { return N; }", "f");
  request.defines = {"N=1"};
  const std::string first = compile(request).image;
  CHECK(compile(request).image == first);
  request.defines = {"N=2"};
  const std::string second = compile(request).image;
  CHECK(second != first);
  CHECK(reinterpret_cast<int (*)()>(MappedImage(second).entry("f"))() == 2);
}

TEST_CASE("only what an entry reaches is in an image") {
  const std::string small = compile(one_file("extern \"C\" int f() { return 1; }", "f")).image;
  const std::string_view text = "int counter; const char* const names[] = {\"a\", \"b\"}; extern \"C\" void absent();"
                                "extern \"C\" const char* g(int i) { absent(); return names[counter += i]; }"
                                "extern \"C\" int f() { return 1; }";
  CHECK(compile(one_file(text, "f")).image.size() == small.size());
}

TEST_CASE("the times add up") {
  const CompileTimes times = compile(small_kernel("native")).times;
  const double parts = times.set_up + times.front_end + times.optimizer + times.code_generation + times.link;
  for (const double part : {times.front_end, times.optimizer, times.code_generation, times.link}) CHECK(part > 0);
  CHECK(times.load >= 0);
  CHECK(parts + times.load <= times.total);
  CHECK(times.total < 60);
}

TEST_CASE("threads compile side by side to the images of one thread") {
  const std::vector<std::string> targets = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"};
  std::vector<std::string> expected;
  for (const std::string& target : targets) expected.push_back(compile(small_kernel(target)).image);
  std::vector<std::string> images(4 * targets.size());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < targets.size(); ++i) {
        const std::size_t turn = (i + t) % targets.size();
        images[t * targets.size() + turn] = compile(small_kernel(targets[turn])).image;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < images.size(); ++i) CHECK(images[i] == expected[i % targets.size()]);
}

TEST_CASE("the compiler's name and options are known") {
  CHECK(compiler_version().starts_with("clang "));
  const std::vector<std::string>& options = compile_options();
  const std::set<std::string> set(options.begin(), options.end());
  for (const char* option : {"-ffp-contract=off", "-ffreestanding", "-fno-builtin", "-std=c++20"})
    CHECK(set.contains(option));
  for (const std::string& option : options) CHECK(option.find("fast-math") == std::string::npos);
  CHECK(component_status().found);
}
