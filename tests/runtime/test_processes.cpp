// What depends on a process's environment or its past: children with a store of their own each.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "cache/store.hpp"
#include "tests/runtime/support.hpp"
#include "tests/tools/child_process.hpp"

using bilogp::Runtime;
using bilogp::test::ChildResult;
using runtime_test::Batch;

namespace {

// Scores, checks the bits, and prints where the kernel came from, whether LLVM is mapped, and every warning.
int score() {
  bilogp::set_log_callback(
      [](std::string_view sentence) { std::printf("warning: %s\n", std::string(sentence).c_str()); });
  try {
    Batch batch(3, 777);
    Runtime::get("cpu").logp(batch.forward());
    const std::string differences = batch.forward_differences();
    if (!differences.empty()) std::printf("wrong: %s\n", differences.c_str());
    for (const bilogp::KernelInfo& kernel : Runtime::loaded_kernels())
      std::printf("origin: %s\n", std::string(to_string(kernel.origin)).c_str());
  } catch (const bilogp::Error& error) {
    std::printf("%s: %s\n", std::string(to_string(error.kind())).c_str(), error.what());
  }
  const bool llvm = !runtime_test::mapped_files("libLLVM").empty() || !runtime_test::mapped_files("libclang").empty();
  std::printf("llvm: %s\n", llvm ? "yes" : "no");
  return 0;
}

// A process that already holds another LLVM, with its symbols visible to all.
int score_beside_llvm() {
  const char* other = std::getenv("BILOGP_TEST_OTHER_LLVM");
  if (other == nullptr || ::dlopen(other, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::printf("skipped: %s\n", other == nullptr ? "none named" : ::dlerror());
    return 0;
  }
  const int code = score();
  for (const std::string& file : runtime_test::mapped_files("libLLVM")) std::printf("file: %s\n", file.c_str());
  return code;
}

// Whether this process has, or ever had, a child; a child's orphans come to it too once it is their reaper.
bool has_had_children() {
  if (::waitpid(-1, nullptr, WNOHANG | __WALL) != -1 || errno != ECHILD) return true;
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_maxrss > 0 || usage.ru_minflt > 0;
}

int score_and_count_children() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (::chdir(std::getenv("TMPDIR")) != 0) return 2;
  const int code = score();
  std::printf("children: %s\n", has_had_children() ? "yes" : "no");
  std::fflush(stdout); // or the child may say it again (ThreadSanitizer flushes at its _exit)
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  std::printf("children after one: %s\n", has_had_children() ? "yes" : "no");
  return code;
}

int say_threads() {
  try {
    std::printf("threads: %d\n", Runtime::num_threads());
  } catch (const bilogp::Error& error) {
    std::printf("%s: %s\n", std::string(to_string(error.kind())).c_str(), error.what());
  }
  return 0;
}

const runtime_test::Child child_score("score", score);
const runtime_test::Child child_beside("score_beside_llvm", score_beside_llvm);
const runtime_test::Child child_alone("score_and_count_children", score_and_count_children);
const runtime_test::Child child_threads("threads", say_threads);

std::string run(const char* name, std::map<std::string, std::string> environment) {
  const ChildResult result =
      bilogp::test::run_child({runtime_test::this_program(), "--child", name}, {.environment = std::move(environment)});
  CHECK(result.exit_code == 0);
  return result.out + result.err;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

bilogp::cache::Store store_in(const std::string& directory) {
  return bilogp::cache::Store({directory, "the test", ""}, [](std::string_view) {});
}

// The key whose canonical text this is.
bilogp::cache::Key key_of(std::string_view text) {
  bilogp::cache::Key key;
  std::string_view rest = text.substr(key.text().size());
  while (!rest.empty()) {
    const std::size_t name = rest.find(':');
    const std::size_t length = rest.find(':', name + 1);
    const std::size_t bytes = std::stoul(std::string(rest.substr(name + 1, length - name - 1)));
    key.add(rest.substr(0, name), rest.substr(length + 1, bytes));
    rest.remove_prefix(length + 1 + bytes + 1);
  }
  return key;
}

} // namespace

TEST_CASE("processes: the first one compiles, the second one reads the store without LLVM") {
  const runtime_test::TemporaryDirectory directory;
  const std::string first = run("score", {{"BILOGP_CACHE_DIR", directory.path()}});
  CAPTURE(first);
  CHECK(has(first, "origin: compiled\nllvm: yes\n"));
  const std::string second = run("score", {{"BILOGP_CACHE_DIR", directory.path()}});
  CAPTURE(second);
  CHECK(second == "origin: store\nllvm: no\n");
  // A process without the component is none the worse for it.
  CHECK(run("score", {{"BILOGP_CACHE_DIR", directory.path()}, {"BILOGP_CLANG_COMPONENT", "/nonexistent"}}) == second);
}

TEST_CASE("processes: a compile starts no child process and writes no file") {
  const runtime_test::TemporaryDirectory directory;
  const std::string& place = directory.path();
  REQUIRE(::chmod(place.c_str(), 0555) == 0);
  const ChildResult result =
      bilogp::test::run_child({runtime_test::this_program(), "--child", "score_and_count_children"},
                              {.environment = {{"BILOGP_CACHE_DIR", ":memory:"},
                                               {"TMPDIR", place},
                                               {"TMP", place},
                                               {"TEMP", place},
                                               {"HOME", place},
                                               {"XDG_CACHE_HOME", place}},
                               .largest_file = 0, // one byte into any file would be the end of it
                               .obey_permissions = true});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(result.out == "origin: compiled\nllvm: yes\nchildren: no\nchildren after one: yes\n");
  CHECK(std::filesystem::is_empty(place));
}

TEST_CASE("processes: without the compiler component and a stored kernel, the sentence says what to install") {
  const runtime_test::TemporaryDirectory directory;
  const std::string said =
      run("score", {{"BILOGP_CACHE_DIR", directory.path()}, {"BILOGP_CLANG_COMPONENT", "/nonexistent"}});
  CAPTURE(said);
  CHECK(has(said, "compile_failed: "));
  CHECK(has(said, "/nonexistent"));
  CHECK(has(said, "libclang-cpp"));
  CHECK(has(said, "llvm: no\n"));
}

TEST_CASE("processes: a stored blob that is no kernel is dropped, and compiled again") {
  const runtime_test::TemporaryDirectory directory;
  run("score", {{"BILOGP_CACHE_DIR", directory.path()}});
  std::string good;
  for (const int damage : {0, 1, 2}) {
    CAPTURE(damage);
    {
      bilogp::cache::Store store = store_in(directory.path());
      const std::vector<bilogp::cache::ListedEntry> entries = store.list();
      REQUIRE(entries.size() == 1);
      const bilogp::cache::Key key = key_of(entries[0].key_text);
      REQUIRE(key.text() == entries[0].key_text);
      if (good.empty()) good = store.get(key)->payload;
      // Checksums hold for all of these: what is wrong is the image itself.
      const std::string bad = damage == 0   ? std::string("no image")
                              : damage == 1 ? good.substr(0, good.size() / 2)
                                            : std::string(good.size(), '\0');
      REQUIRE(store.put(key, entries[0].metadata, bad));
    }
    const std::string again = run("score", {{"BILOGP_CACHE_DIR", directory.path()}});
    CAPTURE(again);
    CHECK(has(again, "origin: compiled\n"));
    CHECK_FALSE(has(again, "wrong"));
    bilogp::cache::Store store = store_in(directory.path());
    CHECK(store.get(key_of(store.list().at(0).key_text))->payload == good);
  }
}

TEST_CASE("processes: a store that cannot be used costs one warning, through the callback") {
  const std::string said = run("score", {{"BILOGP_CACHE_DIR", "/proc/no-such-place"}});
  CAPTURE(said);
  CHECK(has(said, "warning: "));
  CHECK(said.find("warning: ") == said.rfind("warning: "));
  CHECK(has(said, "origin: compiled\n"));
  CHECK_FALSE(has(said, "wrong"));
}

TEST_CASE("processes: BILOGP_NUM_THREADS is a number from 1 to 4096, or refused") {
  CHECK(run("threads", {{"BILOGP_NUM_THREADS", "3"}}) == "threads: 3\n");
  CHECK(run("threads", {{"BILOGP_NUM_THREADS", "4096"}}) == "threads: 4096\n");
  for (const char* bad : {"0", "-1", "4097", "two", "2x", " 2", "99999999999999999999"}) {
    const std::string said = run("threads", {{"BILOGP_NUM_THREADS", bad}});
    CAPTURE(said);
    CHECK(has(said, "invalid_argument: "));
    CHECK(has(said, std::string("\"") + bad + "\""));
    CHECK(has(said, "1 to 4096"));
  }
}

TEST_CASE("processes: kernels compile beside another LLVM of the process") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  MESSAGE("skipped: beside a sanitizer's allocator the component's symbols cannot be kept apart from another LLVM's");
  return;
#endif
  int tried = 0;
  for (const char* other :
       {"libLLVM-14.so.1", "libLLVM-15.so.1", "libLLVM-16.so.1", "libLLVM-17.so.1", "libLLVM.so.18.1",
        "libLLVM.so.19.1", "libLLVM.so.20.1", "libLLVM.so.21.1", "libLLVM.so.22.1"}) {
    const runtime_test::TemporaryDirectory directory;
    const std::string said =
        run("score_beside_llvm", {{"BILOGP_CACHE_DIR", directory.path()}, {"BILOGP_TEST_OTHER_LLVM", other}});
    if (said.starts_with("skipped: ")) continue;
    CAPTURE(said);
    CHECK(has(said, "origin: compiled\n"));
    CHECK_FALSE(has(said, "wrong"));
    const std::size_t file = said.find("file: ");
    REQUIRE(file != std::string::npos);
    if (file == said.rfind("file: ")) continue; // it is the component's own: nothing is beside it
    ++tried;
  }
  if (tried == 0) MESSAGE("skipped: no LLVM but the compiler component's own is installed here");
}
