#include "tests/run_cases.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "bilogp/error.hpp"
#include "runtime/backends/cpu/image.hpp"
#include "tests/cpu/test_backend_support.hpp"

namespace backend_test {

using namespace bilogp;
using namespace bilogp::cpu;

CompileRequest small_kernel(std::string_view target) {
  CompileRequest request;
  request.files = {{kernel_name, kernel_text}, {header_name, header_text}, {second_header, second_header_text}};
  request.entries = {"sum", "weight"};
  request.target = resolve_target(target);
  return request;
}

CompileRequest one_file(std::string_view text, std::string_view entry, std::string_view target) {
  CompileRequest request;
  request.files = {{kernel_name, text}};
  request.entries = {std::string(entry)};
  request.target = resolve_target(target);
  return request;
}

bool answers_are_right(SumFunction sum) {
  const float weights[] = {1.0f, 2.0e30f, 0.125f, 3.0e-39f, -1.0f, -2.5f};
  for (int mode = 0; mode < 6; ++mode) {
    for (long count = 1; count < 68; ++count) {
      std::vector<float> x, y, z, out(static_cast<std::size_t>(count));
      for (long i = 0; i < count; ++i) {
        x.push_back(1.0f + static_cast<float>(i + 1) * 0x1p-12f); // products that a fused operation rounds otherwise
        y.push_back(1.0f - static_cast<float>(i + 2) * 0x1p-13f);
        z.push_back(-1.0f + static_cast<float>(i % 3));
      }
      sum(x.data(), y.data(), z.data(), out.data(), count, mode);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const volatile float product = x[i] * y[i];
        if (out[i] != (product + z[i]) * weights[mode]) return false;
      }
    }
  }
  return true;
}

std::string compile_error(const CompileRequest& request) {
  try {
    compile(request);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::compile_failed);
    return error.what();
  }
  return {};
}

namespace {

// What a process that only maps a stored image does: 0 when it runs and no LLVM was loaded for it.
int map_stored_image(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const MappedImage image(bytes);
  if (!answers_are_right(reinterpret_cast<SumFunction>(image.entry("sum")))) return 2;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("LLVM") != std::string::npos || line.find("clang") != std::string::npos) return 3;
  return 0;
}

// What a process does whose first compiles begin on several threads at once, a little apart: 0 when all succeed.
int compile_first_on_threads() {
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&failures, t] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3 * t));
      try {
        compile(small_kernel("native"));
      } catch (const Error&) {
        ++failures;
      }
    });
  for (std::thread& thread : threads) thread.join();
  return failures;
}

} // namespace
} // namespace backend_test

// A compile that crashed cannot give its memory back. Without frame pointers only a slow walk finds who took it.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:bilogp_clang_compile\nleak:libLLVM\nleak:libclang-cpp\n";
}
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "fast_unwind_on_malloc=0";
}

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--map-stored-image") return backend_test::map_stored_image(argv[2]);
#ifdef BILOGP_TEST_COMPONENT
  setenv("BILOGP_CLANG_COMPONENT", BILOGP_TEST_COMPONENT, 0);
#endif
  if (argc == 2 && std::string_view(argv[1]) == "--compile-first-on-threads")
    return backend_test::compile_first_on_threads();
  return bilogp::test::run_cases(argc, argv);
}
