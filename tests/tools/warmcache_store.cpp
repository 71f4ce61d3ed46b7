#include "tests/tools/warmcache_store.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include <sqlite3.h>

namespace bilogp::test {

namespace fs = std::filesystem;

StoreOfCase::StoreOfCase() {
  std::string name = (fs::temp_directory_path() / "bilogp-warmcache-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no scratch directory");
  path_ = name;
  options.environment = {{"BILOGP_CACHE_DIR", directory()}};
}

StoreOfCase::~StoreOfCase() {
  std::error_code ignored;
  fs::permissions(directory(), fs::perms::owner_all, ignored);
  fs::remove_all(path_, ignored);
}

ChildResult StoreOfCase::run(std::vector<std::string> words) const {
  words.insert(words.begin(), BILOGP_WARMCACHE);
  return run_child(words, options);
}

nlohmann::json StoreOfCase::ask(std::vector<std::string> words, int exit_code) const {
  words.emplace_back("--json");
  const ChildResult result = run(words);
  CAPTURE(result.err);
  CHECK(result.exit_code == exit_code);
  CHECK(result.err.empty() == (exit_code == 0));
  return nlohmann::json::parse(result.out);
}

void StoreOfCase::warm_two() const {
  REQUIRE(ask({"warm", "--operators", "finish", "--id-dtypes", "all"})["compiled"] == 2);
}

void StoreOfCase::without_compiler() {
  options.environment["BILOGP_CLANG_COMPONENT"] = scratch("no-such-component.so");
}

void run_sql(const std::string& path, const std::string& statements) {
  sqlite3* database = nullptr;
  const bool good = sqlite3_open(path.c_str(), &database) == SQLITE_OK &&
                    sqlite3_exec(database, statements.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  const std::string message = sqlite3_errmsg(database);
  sqlite3_close(database);
  if (!good) throw std::runtime_error(message);
}

} // namespace bilogp::test
