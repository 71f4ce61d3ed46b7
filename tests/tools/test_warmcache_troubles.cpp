// What bilogp-warmcache says and returns where its store, its compiler, stdout or stderr fails it.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tests/tools/warmcache_store.hpp"

namespace {

namespace fs = std::filesystem;
using namespace bilogp::test;
using Json = nlohmann::json;

} // namespace

TEST_CASE("a store that cannot be written is a problem that is named") {
  StoreOfCase store;
  store.warm_two();
  fs::permissions(store.file(), fs::perms::owner_read);
  fs::permissions(store.directory(), fs::perms::owner_read | fs::perms::owner_exec);
  store.options.obey_permissions = true;
  const Json doctor = store.ask({"doctor"}, 1);
  CHECK(doctor["store"]["writable"] == false);
  CHECK(store.ask({"list"})["entries"].size() == 2);
  CHECK(store.ask({"warm", "--operators", "finish", "--id-dtypes", "all"})["compiled"] == 0);
  const Json warmed = store.ask({"warm", "--operators", "backward", "--dtypes", "bf16"}, 1);
  REQUIRE(warmed["kernels"].size() == 1);
  CHECK(warmed["kernels"][0]["stored"] == false);
  CHECK(store.run({"clear"}).exit_code == 1);
}

TEST_CASE("a damaged store is named, and clear mends it") {
  const StoreOfCase store;
  store.warm_two();
  {
    std::ofstream file(store.file(), std::ios::binary | std::ios::trunc);
    file << std::string(50'000, 'x');
  }
  for (const char* command : {"list", "verify", "where"}) {
    CAPTURE(command);
    const ChildResult result = store.run({command});
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err, "`bilogp-warmcache clear` removes it"));
  }
  CHECK(contains(store.run({"where"}).out, store.file()));
  CHECK(store.run({"clear"}).exit_code == 0);
  CHECK(store.ask({"list"})["entries"].empty());
  store.warm_two();
}

TEST_CASE("a store in memory only keeps nothing, which is a problem for warm alone") {
  StoreOfCase store;
  store.options.environment["BILOGP_CACHE_DIR"] = ":memory:";
  CHECK(store.ask({"where"})["file"].is_null());
  CHECK(store.ask({"list"})["entries"].empty());
  CHECK(store.ask({"warm", "--operators", "finish"}, 1)["kernels"][0]["stored"] == false);
}

TEST_CASE("a store's place that is a file is named by the commands that look there") {
  StoreOfCase store;
  const std::string in_the_way = store.scratch("file");
  std::ofstream(in_the_way) << "not a store";
  for (const std::string& place : {in_the_way, in_the_way + "/below"}) {
    CAPTURE(place);
    store.options.environment["BILOGP_CACHE_DIR"] = place;
    for (const char* command : {"list", "where", "doctor"}) {
      CAPTURE(command);
      const ChildResult result = store.run({command});
      CHECK(result.exit_code == 1);
      CHECK(contains(result.err, in_the_way + " is not a directory"));
      CHECK(contains(result.err, "BILOGP_CACHE_DIR"));
      CHECK(contains(result.out, place + "/kernels-v1.db"));
    }
    CHECK(store.ask({"where"}, 1)["kernels"] == 0);
    CHECK(store.ask({"list"}, 1)["entries"].empty());
  }
}

TEST_CASE("warm without the compiler has no kernel to show, and shows none") {
  StoreOfCase store;
  store.without_compiler();
  const ChildResult result = store.run({"warm", "--operators", "finish"});
  CHECK(result.exit_code == 1);
  CHECK(result.out.starts_with("0 compiled, 0 already there"));
  CHECK(contains(result.err, "no-such-component.so"));
}

TEST_CASE("one of a thing is not many") {
  const StoreOfCase store;
  CHECK(store.run({"warm", "--operators", "finish"}).exit_code == 0);
  CHECK(contains(store.run({"list"}).out, "\n1 kernel, "));
  CHECK(contains(store.run({"verify"}).out, "\n1 kernel checked, 0 bad"));
  CHECK(contains(store.run({"clear"}).out, "Removed 1 kernel, "));
}

TEST_CASE("what a terminal would obey is escaped, from the environment and from the store's file") {
  StoreOfCase store;
  store.warm_two();
  run_sql(store.file(), "UPDATE kernel SET description='logp_finish \x1b[31m' WHERE description LIKE '%int32%'");
  for (const char* command : {"list", "verify"}) {
    const ChildResult result = store.run({command});
    CHECK_FALSE(contains(result.out, "\x1b"));
    CHECK(contains(result.out, "logp_finish \\x1b[31m"));
  }
  store.options.environment["BILOGP_CACHE_DIR"] = store.scratch("a\x1b[31mb");
  CHECK(contains(store.run({"where"}).out, "a\\x1b[31mb/kernels-v1.db"));
}

TEST_CASE("an answer that cannot be written is an error, also where it is help") {
  StoreOfCase store;
  const auto check_refused = [&] {
    for (const auto& words : {std::vector<std::string>{"where"}, {"--help"}, {"warm", "--help"}, {"--version"}}) {
      const ChildResult result = store.run(words);
      CHECK(result.exit_code == 1);
      CHECK(contains(result.err, "could not be written"));
    }
  };
  store.options.stdout_path = "/dev/full";
  check_refused();
  store.options.stdout_path.clear();
  store.options.closed = {STDOUT_FILENO};
  check_refused();
}

TEST_CASE("a stderr that cannot be written changes no exit status") {
  StoreOfCase store;
  std::ofstream(store.scratch("file")) << "not a store";
  const auto check_statuses = [&] {
    store.options.environment["BILOGP_CACHE_DIR"] = store.directory();
    CHECK(store.run({"nonsense"}).exit_code == 2);
    CHECK(store.run({"warm", "--operators", "x"}).exit_code == 2);
    CHECK(store.run({"warm", "--targets", "cpu:z80"}).exit_code == 2);
    CHECK(store.run({"where"}).exit_code == 0);
    store.options.environment["BILOGP_CACHE_DIR"] = store.scratch("file");
    CHECK(store.run({"list"}).exit_code == 1);
    CHECK(store.run({"doctor"}).exit_code == 1);
    // The library warns as well, of a store that takes nothing.
    CHECK(store.run({"warm", "--operators", "finish"}).exit_code == 1);
  };
  store.options.stderr_path = "/dev/full";
  check_statuses();
  store.options.stderr_path.clear();
  store.options.closed = {STDERR_FILENO};
  check_statuses();
  store.options.stdout_path = "/dev/full";
  CHECK(store.run({"where"}).exit_code == 1);
}
