#include <cstdlib>
#include <filesystem>
#include <map>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/directory.hpp"
#include "cache/location.hpp"
#include "support.hpp"

using namespace store_test;
namespace fs = std::filesystem;

namespace {

// An environment and a system made up for one question.
struct MadeUp {
  std::map<std::string, std::string> environment;
  std::string passwd_home;
  std::string network_below; // everything below is "on a network file system"

  [[nodiscard]] Location locate() const {
    Surroundings surroundings;
    surroundings.variable = [this](const char* name) -> std::optional<std::string> {
      const auto found = environment.find(name);
      return found == environment.end() ? std::nullopt : std::optional<std::string>(found->second);
    };
    surroundings.passwd_home = [this] { return passwd_home; };
    surroundings.on_network = [this](const std::string& path) {
      return !network_below.empty() && path.starts_with(network_below);
    };
    surroundings.user = ::geteuid();
    return bilogp::cache::locate(surroundings);
  }
};

std::string private_name() {
  return fmt::format("/bilogp-{}", ::geteuid());
}

} // namespace

TEST_CASE("the places are tried in the documented order") {
  const ScratchDirectory scratch;
  for (const char* name : {"/home", "/passwd", "/tmp"}) fs::create_directory(scratch.path() + name);
  MadeUp system;
  system.passwd_home = scratch.path() + "/passwd";
  system.environment = {{"BILOGP_CACHE_DIR", scratch.path() + "/named/deep/"},
                        {"XDG_CACHE_HOME", scratch.path() + "/xdg"},
                        {"HOME", scratch.path() + "/home"},
                        {"TMPDIR", scratch.path() + "/tmp"}};
  const auto check = [&](const std::string& directory, const std::string& reason) {
    const Location location = system.locate();
    CHECK(location.directory == directory);
    CHECK(location.reason == reason);
  };
  check(scratch.path() + "/named/deep", "BILOGP_CACHE_DIR");
  system.environment["BILOGP_CACHE_DIR"] = "";
  check(scratch.path() + "/xdg/bilogp", "XDG_CACHE_HOME");
  system.environment["XDG_CACHE_HOME"] = "relative";
  check(scratch.path() + "/home/.cache/bilogp", "HOME");
  system.environment.erase("XDG_CACHE_HOME");
  system.environment["HOME"] = scratch.path() + "/homeless-shelter";
  check(scratch.path() + "/passwd/.cache/bilogp", "passwd");
  system.environment.erase("HOME");
  check(scratch.path() + "/passwd/.cache/bilogp", "passwd");
  system.passwd_home = "";
  check(scratch.path() + "/tmp" + private_name(), "TMPDIR");
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"home", "passwd", "tmp"}); // nothing was created
  CHECK(names_in(scratch.path() + "/tmp").empty());
  system.environment["TMPDIR"] = scratch.path() + "/nowhere";
  const Location nowhere = system.locate();
  CHECK(nowhere.directory == "");
  CHECK(nowhere.reason.find("/nowhere") != std::string::npos);
}

TEST_CASE(":memory: asks for memory only and warns of nothing") {
  MadeUp system;
  system.environment = {{"BILOGP_CACHE_DIR", ":memory:"}};
  const Location location = system.locate();
  CHECK(location.directory == "");
  CHECK(asked_for_memory(location));
  Warnings warnings;
  Store store(location, warnings.receiver());
  CHECK(keep(store, 1));
  CHECK(warnings.count() == 0);
}

TEST_CASE("a usual place on a network file system gives way to the node's own, a named one does not") {
  const ScratchDirectory scratch;
  for (const char* name : {"/home", "/tmp"}) fs::create_directory(scratch.path() + name);
  MadeUp system;
  system.environment = {{"HOME", scratch.path() + "/home"}, {"TMPDIR", scratch.path() + "/tmp"}};
  system.network_below = scratch.path() + "/home";
  Location location = system.locate();
  CHECK(location.directory == scratch.path() + "/tmp" + private_name());
  CHECK(location.reason == "TMPDIR");
  CHECK(location.note == scratch.path() + "/home/.cache/bilogp is on a network file system");
  system.environment["BILOGP_CACHE_DIR"] = scratch.path() + "/home/named";
  location = system.locate();
  CHECK(location.directory == scratch.path() + "/home/named");
  CHECK(location.note == "");
}

TEST_CASE("network file systems are known by their magic numbers") {
  for (const unsigned long magic : {0x6969UL, 0x517bUL, 0xff534d42UL, 0xfe534d42UL, 0x0bd00bd0UL, 0x47504653UL,
                                    0x00c36400UL, 0x65735546UL, 0x01021997UL, 0xffffffffff534d42UL})
    CHECK(is_network_magic(magic));
  for (const unsigned long magic : {0xef53UL, 0x01021994UL, 0x58465342UL, 0x9123683eUL, 0x794c7630UL, 0x2fc12fc1UL})
    CHECK_FALSE(is_network_magic(magic)); // ext4, tmpfs, xfs, btrfs, overlay, zfs
}

TEST_CASE("a private directory that is not private is refused, with one warning") {
  const ScratchDirectory scratch;
  const std::string place = scratch.path() + private_name();
  MadeUp system;
  system.environment = {{"TMPDIR", scratch.path()}};
  std::string why;
  SUBCASE("a link to a fine directory") {
    fs::create_directory(scratch.path() + "/elsewhere");
    fs::permissions(scratch.path() + "/elsewhere", fs::perms::owner_all);
    fs::create_directory_symlink(scratch.path() + "/elsewhere", place);
    why = "symbolic link";
  }
  SUBCASE("open to others") {
    fs::create_directory(place);
    ::chmod(place.c_str(), 0777);
    why = "others may enter";
  }
  SUBCASE("a file") {
    write_file(place, "x");
    why = "not a directory";
  }
  SUBCASE("of another user") {
    if (::geteuid() != 0) {
      MESSAGE("skipped: only root can give a directory away");
      return;
    }
    fs::create_directory(place);
    ::chmod(place.c_str(), 0700);
    REQUIRE(::chown(place.c_str(), 65534, 65534) == 0);
    why = "another user";
  }
  if (why.empty()) return;
  const Location location = system.locate();
  CHECK(location.directory == "");
  CHECK(location.reason.find(why) != std::string::npos);
  Warnings warnings;
  Store store(location, warnings.receiver());
  CHECK(keep(store, 1));
  CHECK(keep(store, 2));
  CHECK(has(store, 1));
  CHECK(warnings.count() == 1);
}

TEST_CASE("a private directory that turned into a link after the decision is not used") {
  const ScratchDirectory scratch;
  MadeUp system;
  system.environment = {{"TMPDIR", scratch.path()}};
  const Location location = system.locate();
  REQUIRE(location.reason == "TMPDIR");
  fs::create_directory(scratch.path() + "/elsewhere");
  fs::create_directory_symlink(scratch.path() + "/elsewhere", location.directory);
  Warnings warnings;
  Store store(location, warnings.receiver());
  CHECK_FALSE(keep(store, 1));
  CHECK(has(store, 1)); // from memory
  CHECK_FALSE(store.lock(key_of(2)).held());
  CHECK(warnings.count() == 1);
  CHECK(names_in(scratch.path() + "/elsewhere").empty());
}

TEST_CASE("the process's own store follows the real environment, without HOME and passwd entry too") {
  const ScratchDirectory scratch;
  ::chmod(scratch.path().c_str(), 01777);
  CHECK(in_child([&] {
    ::clearenv();
    ::setenv("TMPDIR", scratch.path().c_str(), 1);
    if (::geteuid() == 0 && (::setresgid(54321, 54321, 54321) != 0 || ::setresuid(54321, 54321, 54321) != 0))
      return false;
    const bool has_home = !process_surroundings().passwd_home().empty();
    Store& store = process_store();
    if (!has_home && store.location().reason != "TMPDIR") return false;
    if (has_home) return store.location().reason == "passwd"; // not root: nobody's home is to be written by a test
    struct stat status;
    return keep(store, 1) && has(store, 1) && ::stat(store.location().directory.c_str(), &status) == 0 &&
           (status.st_mode & 07777) == 0700 && store.file_bytes() > 0;
  }));
}

TEST_CASE("directories that the store makes are 0700, existing ones keep their mode") {
  const ScratchDirectory scratch;
  const auto mode = [](const std::string& path) {
    struct stat status;
    REQUIRE(::stat(path.c_str(), &status) == 0);
    return status.st_mode & 07777;
  };
  fs::create_directory(scratch.path() + "/shared");
  ::chmod((scratch.path() + "/shared").c_str(), 0775);
  Store store({scratch.path() + "/shared/a/b", "BILOGP_CACHE_DIR", ""}, {});
  CHECK(keep(store, 1));
  CHECK(mode(scratch.path() + "/shared") == 0775);
  CHECK(mode(scratch.path() + "/shared/a") == 0700);
  CHECK(mode(scratch.path() + "/shared/a/b") == 0700);
  Store other({scratch.path() + "/shared", "BILOGP_CACHE_DIR", ""}, {});
  CHECK(keep(other, 1));
  CHECK(mode(scratch.path() + "/shared") == 0775);
}

TEST_CASE("a store behind a linked directory works: a home may be a link") {
  const ScratchDirectory scratch;
  fs::create_directory(scratch.path() + "/real");
  fs::create_directory_symlink(scratch.path() + "/real", scratch.path() + "/home");
  Warnings warnings;
  Store store({scratch.path() + "/home/.cache/bilogp", "HOME", ""}, warnings.receiver());
  CHECK(keep(store, 1));
  CHECK(has(store, 1));
  CHECK(exists(scratch.path() + "/real/.cache/bilogp/kernels-v1.db"));
  CHECK(warnings.count() == 0);
}
