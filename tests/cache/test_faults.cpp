// The file can be read but not written, is full, is another's, or is gone.
#include <csignal>
#include <filesystem>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bilogp/error.hpp"
#include "support.hpp"

using namespace store_test;
namespace fs = std::filesystem;

namespace {

// Root may write anywhere, so the work is done as a user who may not.
bool as_nobody(const std::function<bool()>& work) {
  return in_child([&] {
    if (::geteuid() == 0 && (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0))
      return false;
    return work();
  });
}

} // namespace

TEST_CASE("a read-only directory serves hits and costs one warning") {
  const ScratchDirectory scratch;
  {
    Store store(scratch.location(), {});
    for (int number = 0; number < 5; ++number) REQUIRE(keep(store, number));
  }
  fs::remove(scratch.file() + "-journal");
  mode_t file_mode = 0444;
  SUBCASE("a file that cannot be written") {
    file_mode = 0444;
  }
  SUBCASE("a file that could be, but for its journal") {
    file_mode = 0666;
  }
  ::chmod(scratch.file().c_str(), file_mode);
  ::chmod(scratch.store().c_str(), 0555);
  const std::string before = read_file(scratch.file());
  CHECK(as_nobody([&] {
    Warnings warnings;
    Store store(scratch.location(), warnings.receiver());
    for (int number = 0; number < 5; ++number)
      if (!has(store, number)) return false;
    if (warnings.count() != 0 || has(store, 5)) return false;
    if (keep(store, 5) || keep(store, 6) || !has(store, 5)) return false; // kept in the process
    if (store.list().size() != 7 || store.verify({}).checked != 7) return false;
    store.erase(key_of(1));
    return has(store, 2) && warnings.count() == 1 && !store.lock(key_of(9)).held();
  }));
  CHECK(as_nobody([&] {
    try {
      Store(scratch.location(), {}).clear();
      return false;
    } catch (const bilogp::Error& error) {
      return error.kind() == bilogp::ErrorKind::io;
    }
  }));
  CHECK(read_file(scratch.file()) == before);
  ::chmod(scratch.store().c_str(), 0755);
}

TEST_CASE("a directory that cannot be made or written: memory only, one warning") {
  const ScratchDirectory scratch;
  write_file(scratch.path() + "/file", "x");
  fs::create_directory(scratch.path() + "/denied");
  ::chmod((scratch.path() + "/denied").c_str(), 0555);
  for (const char* place : {"/file", "/file/below", "/denied", "/denied/below"}) {
    CAPTURE(place);
    CHECK(as_nobody([&] {
      Warnings warnings;
      Store store({scratch.path() + place, "BILOGP_CACHE_DIR", ""}, warnings.receiver());
      return !has(store, 1) && !store.lock(key_of(1)).held() && !keep(store, 1) && has(store, 1) && !keep(store, 2) &&
             warnings.count() == 1;
    }));
  }
}

TEST_CASE("a read-only store with a hot journal is skipped with one warning") {
  const ScratchDirectory scratch;
  {
    REQUIRE(keep_once(scratch.location(), 1));
  }
  // What a crash leaves: a journal with a header and one page.
  std::string journal("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);
  journal += std::string("\0\0\0\1", 4) + std::string(4, '\0') + std::string("\0\0\0\4", 4) +
             std::string("\0\0\2\0", 4) + std::string("\0\0\x40\0", 4);
  journal.resize(512, '\0');
  journal += std::string(4 + 16384 + 4, 'j');
  write_file(scratch.file() + "-journal", journal);
  ::chmod((scratch.file() + "-journal").c_str(), 0444);
  ::chmod(scratch.file().c_str(), 0444);
  ::chmod(scratch.store().c_str(), 0555);
  CHECK(as_nobody([&] {
    Warnings warnings;
    Store store(scratch.location(), warnings.receiver());
    return !has(store, 1) && !has(store, 2) && !keep(store, 1) && has(store, 1) && warnings.count() == 1;
  }));
}

namespace {

// Puts until the disk is full; all that was put before must be readable then and later.
bool fills_up(const Location& location) {
  Warnings warnings;
  Store store(location, warnings.receiver());
  int stored = 0;
  while (stored < 200 && keep(store, stored, 60'000)) ++stored;
  if (stored < 3 || stored == 200 || warnings.count() != 1) return false;
  for (int number = stored; number < stored + 5; ++number)
    if (keep(store, number, 60'000)) return false;
  Store other(location, {});
  for (int number = 0; number < stored; ++number)
    if (!has(store, number, 60'000) || !has(other, number, 60'000)) return false;
  return has(store, stored + 4, 60'000) && warnings.count() == 1; // the rest is in the process
}

// A file system of 3 MB, seen by this process alone; who may not mount becomes root of a user namespace first.
bool mount_small_disk(const std::string& place) {
  const std::string user = fmt::format("0 {} 1", ::geteuid());
  const std::string group = fmt::format("0 {} 1", ::getegid());
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", user);
    write_file("/proc/self/gid_map", group);
  }
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", place.c_str(), "tmpfs", 0, "size=3m") == 0;
}

} // namespace

TEST_CASE("a full disk: what is stored is served, the rest stays in the process, one warning") {
  const ScratchDirectory scratch;
  constexpr int cannot_mount = 77;
  const pid_t child = start_child([&] {
    bool is_mounted = false;
    try {
      is_mounted = mount_small_disk(scratch.path());
    } catch (const std::runtime_error&) {
      is_mounted = false; // as where the namespace may not be set up
    }
    if (!is_mounted) ::_exit(cannot_mount);
    return fills_up(scratch.location());
  });
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == cannot_mount) {
    MESSAGE("skipped: neither this user nor a user namespace may mount a file system here");
    return;
  }
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a file that may not grow (RLIMIT_FSIZE) is like a full disk") {
  const ScratchDirectory scratch;
  CHECK(in_child([&] {
    const rlimit limit{1'000'000, 1'000'000};
    std::signal(SIGXFSZ, SIG_IGN);
    return ::setrlimit(RLIMIT_FSIZE, &limit) == 0 && fills_up(scratch.location());
  }));
}

TEST_CASE("another program's file and a newer schema are left as they are, with one warning") {
  const ScratchDirectory scratch;
  fs::create_directory(scratch.store());
  SUBCASE("newer") {
    {
      REQUIRE(keep_once(scratch.location(), 1));
    }
    run_sql(scratch.file(), "PRAGMA user_version=2");
  }
  SUBCASE("older than any") {
    run_sql(scratch.file(), "PRAGMA application_id=0x424C4750; CREATE TABLE x(y)");
  }
  SUBCASE("foreign id") {
    run_sql(scratch.file(), "PRAGMA application_id=12345; CREATE TABLE x(y)");
  }
  SUBCASE("no id but tables") {
    run_sql(scratch.file(), "CREATE TABLE x(y)");
  }
  SUBCASE("foreign, in WAL mode") {
    run_sql(scratch.file(), "PRAGMA journal_mode=WAL; CREATE TABLE x(y)");
  }
  const std::string before = read_file(scratch.file());
  REQUIRE(before.size() > 0);
  Warnings warnings;
  {
    Store store(scratch.location(), warnings.receiver());
    CHECK_FALSE(store.get(key_of(1)));
    CHECK_FALSE(keep(store, 1));
    CHECK(has(store, 1));
    CHECK_FALSE(store.lock(key_of(1)).held());
    CHECK_THROWS_AS(Store(scratch.location(), {}).list(), bilogp::Error);
    CHECK_THROWS_AS(Store(scratch.location(), {}).clear(), bilogp::Error);
  }
  CHECK(warnings.count() == 1);
  CHECK(read_file(scratch.file()) == before);
}

TEST_CASE("an empty file becomes a store") {
  const ScratchDirectory scratch;
  fs::create_directory(scratch.store());
  write_file(scratch.file(), "");
  Warnings warnings;
  Store store(scratch.location(), warnings.receiver());
  CHECK_FALSE(has(store, 1));
  CHECK(read_file(scratch.file()).empty());
  CHECK(keep(store, 1));
  CHECK(has(store, 1));
  CHECK(ask_sql(scratch.file(), "PRAGMA user_version") == 1);
  CHECK(warnings.count() == 0);
}

TEST_CASE("a store removed under us is made again") {
  const ScratchDirectory scratch;
  Warnings warnings;
  Store store(scratch.location(), warnings.receiver());
  REQUIRE(keep(store, 1));
  REQUIRE(has(store, 1));
  SUBCASE("the directory") {
    fs::remove_all(scratch.store());
  }
  SUBCASE("the file") {
    fs::remove(scratch.file());
  }
  CHECK(keep(store, 2));
  CHECK(has(store, 2));
  CHECK_FALSE(has(store, 1));
  CHECK(has_once(scratch.location(), 2));
  CHECK(warnings.count() == 0);
}

TEST_CASE("what others put into a new file is found by a store that had the old one open") {
  const ScratchDirectory scratch;
  Store store(scratch.location(), {});
  REQUIRE(keep(store, 1));
  fs::remove_all(scratch.store());
  CHECK(in_child([&] { return keep_once(scratch.location(), 2); }));
  CHECK(has(store, 2));
}

TEST_CASE("a store removed for good costs one warning at most") {
  const ScratchDirectory scratch;
  Warnings warnings;
  Store store(scratch.location(), warnings.receiver());
  REQUIRE(keep(store, 1));
  fs::remove_all(scratch.store());
  write_file(scratch.store(), "a file in the directory's place");
  for (int number = 2; number < 5; ++number) {
    CHECK_FALSE(keep(store, number));
    CHECK(has(store, number));
  }
  CHECK(warnings.count() == 1);
}

TEST_CASE("a receiver of warnings may use the store, fork and throw") {
  const ScratchDirectory scratch;
  write_file(scratch.store(), "not a directory");
  Store* the_store = nullptr;
  int calls = 0;
  Store store(scratch.location(), [&](std::string_view) {
    ++calls;
    keep(*the_store, 7);
    in_child([] { return true; });
    throw std::runtime_error("from a receiver");
  });
  the_store = &store;
  CHECK_FALSE(keep(store, 1));
  CHECK(has(store, 7));
  CHECK(calls == 1);
}
