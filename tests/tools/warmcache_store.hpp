// Runs the real bilogp-warmcache with a kernel store that lasts for one test case.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/tools/child_process.hpp"

namespace bilogp::test {

class StoreOfCase {
public:
  StoreOfCase();
  ~StoreOfCase(); // removes all of it
  StoreOfCase(const StoreOfCase&) = delete;
  StoreOfCase& operator=(const StoreOfCase&) = delete;

  [[nodiscard]] std::string scratch(const std::string& name) const { return path_ + "/" + name; } // beside the store
  [[nodiscard]] std::string directory() const { return path_ + "/store"; }
  [[nodiscard]] std::string file() const { return directory() + "/kernels-v1.db"; }

  [[nodiscard]] ChildResult run(std::vector<std::string> words) const;
  // The answer in JSON; the exit status must be as expected, and what is wrong on stderr.
  [[nodiscard]] nlohmann::json ask(std::vector<std::string> words, int exit_code = 0) const;
  // Two small kernels for this machine.
  void warm_two() const;

  void without_compiler();

  ChildOptions options;

private:
  std::string path_;
};

// Throws std::runtime_error.
void run_sql(const std::string& path, const std::string& statements);

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace bilogp::test
