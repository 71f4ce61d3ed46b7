// What a compile does to the process that asked for it: nothing.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bilogp/error.hpp"
#include "tests/cpu/test_backend_support.hpp"

using namespace bilogp;
using namespace bilogp::cpu;
using namespace backend_test;

namespace {

constexpr std::string_view crashing = "#pragma clang __debug crash\n";

std::vector<struct sigaction> handlers() {
  std::vector<struct sigaction> all;
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    all.push_back(action);
  }
  return all;
}

// glibc shows the kernel's SA_RESTORER in the flags of every handler that was ever set, a default one too.
int flags_of(const struct sigaction& action) {
  return action.sa_flags & ~0x04000000;
}

bool same(const std::vector<struct sigaction>& a, const std::vector<struct sigaction>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].sa_sigaction != b[i].sa_sigaction || flags_of(a[i]) != flags_of(b[i])) return false;
    for (int signal = 1; signal < 65; ++signal)
      if (sigismember(&a[i].sa_mask, signal) != sigismember(&b[i].sa_mask, signal)) return false;
  }
  return true;
}

// Sends stdout and stderr into a file for as long as it lives.
class CapturedOutput {
public:
  CapturedOutput() : file_(open("/tmp", O_TMPFILE | O_RDWR, 0600)) {
    std::fflush(nullptr);
    for (int fd = 1; fd <= 2; ++fd) {
      saved_[static_cast<std::size_t>(fd)] = dup(fd);
      dup2(file_, fd);
    }
  }
  ~CapturedOutput() {
    std::fflush(nullptr);
    for (int fd = 1; fd <= 2; ++fd) {
      dup2(saved_[static_cast<std::size_t>(fd)], fd);
      close(saved_[static_cast<std::size_t>(fd)]);
    }
    close(file_);
  }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;
  [[nodiscard]] std::string text() const {
    std::fflush(nullptr);
    std::string text(static_cast<std::size_t>(lseek(file_, 0, SEEK_END)), '\0');
    const ssize_t size = pread(file_, text.data(), text.size(), 0);
    return size < 0 ? "unreadable" : text;
  }

private:
  int file_;
  std::array<int, 3> saved_ = {};
};

class Environment {
public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Environment() { setenv(name_, before_.c_str(), 1); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

private:
  const char* name_;
  std::string before_;
};

// Runs this program with arguments; its exit status.
int run_self(const std::vector<std::string>& arguments) {
  std::vector<char*> argv = {const_cast<char*>("test_cpu_backend")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv.data(), environ) == 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST_CASE("a stored image is mapped and run without LLVM") {
  const std::string path = std::filesystem::temp_directory_path() / ("bilogp-image-" + std::to_string(getpid()));
  std::ofstream(path, std::ios::binary) << compile(small_kernel("native")).image;
  CHECK(run_self({"--map-stored-image", path}) == 0);
  std::filesystem::remove(path);
}

// Many processes: what only the first compiles of one can get wrong has one chance in each.
TEST_CASE("the first compiles of a process may run side by side") {
  for (int process = 0; process < 20; ++process) CHECK(run_self({"--compile-first-on-threads"}) == 0);
}

TEST_CASE("signal handlers are as they were after compiles, good, bad and crashed") {
  const auto before = handlers();
  compile(small_kernel("native"));
  CHECK(same(before, handlers()));
  compile_error(one_file("broken", "f"));
  CHECK(same(before, handlers()));
  compile_error(one_file(crashing, "f"));
  CHECK(same(before, handlers()));
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (int signal = 1; signal < 32; ++signal) CHECK(!sigismember(&mask, signal));
}

TEST_CASE("a crash of clang is an error, and later compiles are as before") {
  const std::string expected = compile(small_kernel("native")).image;
  for (int round = 0; round < 5; ++round) {
    const std::string crash = compile_error(one_file(crashing, "f"));
    CHECK(crash.find("clang crashed") != std::string::npos);
    CHECK(compile(small_kernel("native")).image == expected);
    const std::string fatal = compile_error(one_file("#pragma clang __debug llvm_fatal_error\n", "f"));
    CHECK(fatal.find("LLVM gave up: ") != std::string::npos);
    CHECK(compile(small_kernel("native")).image == expected);
  }
}

TEST_CASE("a crash on one thread leaves the compiles of others alone") {
  const std::string expected = compile(small_kernel("native")).image;
  std::atomic<int> wrong = 0;
  std::thread crashes([&] {
    for (int round = 0; round < 5; ++round)
      wrong += compile_error(one_file(crashing, "f")).find("clang crashed") == std::string::npos;
  });
  for (int round = 0; round < 5; ++round) wrong += compile(small_kernel("native")).image != expected;
  crashes.join();
  CHECK(wrong == 0);
}

// In a child: the stack may run out inside malloc, whose state nobody can repair.
TEST_CASE("a stack overflow of clang is an error") {
  const pid_t child = fork();
  if (child == 0) {
    std::string deep = "extern \"C\" int f(int x) { return ";
    for (int i = 0; i < 200000; ++i) deep += "- "; // one recursion of the parser each
    const std::string overflow = compile_error(one_file(deep + "x; }", "f"));
    _exit(overflow.find("clang crashed") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("nothing is printed") {
  std::string printed = "nothing ran";
  {
    const CapturedOutput output;
    compile(small_kernel("native"));
    for (const char* text : {"broken", "#warning hello\n#error hello\n", "#pragma clang __debug llvm_fatal_error\n",
                             "#pragma clang __debug crash\n", "extern \"C\" void f() { asm(\"nonsense\"); }"})
      compile_error(one_file(text, "f"));
    printed = output.text();
  }
  CHECK(printed == "");
}

#if defined(__x86_64__)
TEST_CASE("the caller's floating-point mode is kept and does not change the code") {
  const std::string_view text = "extern \"C\" float f() { return 1.0e-39f * 0.3f + 1.0f / 3.0f; }";
  const std::string expected = compile(one_file(text, "f")).image;
  const unsigned before = _mm_getcsr();
  const unsigned odd = 0x1f80U | 0x8040U | 0x6000U; // flush to zero, denormals are zero, round towards zero
  _mm_setcsr(odd);
  const std::string image = compile(one_file(text, "f")).image;
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  CHECK((after & ~0x3fU) == odd);
  CHECK(image == expected);
}
#endif

namespace {

char* guarded_page = nullptr;
volatile std::sig_atomic_t faults_seen = 0;

void open_page(int, siginfo_t* info, void*) {
  if (info->si_addr != guarded_page) _exit(9);
  mprotect(guarded_page, 4096, PROT_READ | PROT_WRITE);
  faults_seen = faults_seen + 1;
}

} // namespace

TEST_CASE("the host's own fault handlers work while a compile runs") {
  guarded_page = static_cast<char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(guarded_page != MAP_FAILED);
  struct sigaction ours = {};
  struct sigaction before = {};
  ours.sa_sigaction = open_page;
  ours.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &ours, &before);
  std::atomic<bool> done = false;
  std::thread compiler([&] {
    compile(small_kernel("native"));
    compile_error(one_file(crashing, "f"));
    done = true;
  });
  int faults = 0;
  while (!done || faults == 0) {
    mprotect(guarded_page, 4096, PROT_NONE);
    *const_cast<volatile char*>(guarded_page) = 1;
    ++faults;
  }
  compiler.join();
  CHECK(faults_seen == faults);
  struct sigaction after = {};
  sigaction(SIGSEGV, &before, &after);
  const bool kept = after.sa_sigaction == ours.sa_sigaction;
  CHECK(kept);
  munmap(guarded_page, 4096);
}

TEST_CASE("a missing component is a clear error" * doctest::description("in a process that has not loaded it")) {
  if (std::getenv("BILOGP_TEST_MISSING") == nullptr) {
    const Environment missing("BILOGP_TEST_MISSING", "1");
    CHECK(run_self({"--test-case=a missing component is a clear error"}) == 0);
    return;
  }
  const CompileRequest request = small_kernel("native");
  {
    const Environment named("BILOGP_CLANG_COMPONENT", "/nonexistent/libbilogp_clang.so");
    CHECK(!component_status().found);
    const std::string sentence = compile_error(request);
    for (const char* part : {"kernels cannot be compiled", "/nonexistent/libbilogp_clang.so", "-dev"})
      CHECK(sentence.find(part) != std::string::npos);
    CHECK(sentence.find(component_status().reason) != std::string::npos);
  }
  {
    const Environment named("BILOGP_CLANG_COMPONENT", "/proc/self/exe"); // there, but no component
    const std::string sentence = compile_error(request);
    for (const char* part : {"does not load", "install the packages libllvm", "libclang-cpp"})
      CHECK(sentence.find(part) != std::string::npos);
  }
  CHECK(component_status().found);
  CHECK(!compile(request).image.empty()); // an attempt that failed is made again
}
