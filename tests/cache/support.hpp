// What the store's tests share: scratch directories, child processes, keys and payloads to recognise.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "cache/store.hpp"

namespace store_test {

using namespace bilogp::cache;

// Removed with all it holds by the destructor.
class ScratchDirectory {
public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string store() const { return path_ + "/store"; }
  [[nodiscard]] std::string file() const { return store() + "/kernels-v1.db"; }
  [[nodiscard]] Location location() const { return {store(), "BILOGP_CACHE_DIR", ""}; }

private:
  std::string path_;
};

// Collects a store's warnings.
class Warnings {
public:
  Warn receiver() {
    return [this](std::string_view sentence) {
      const std::scoped_lock lock(mutex_);
      sentences_.emplace_back(sentence);
    };
  }
  [[nodiscard]] std::size_t count() const { return sentences_.size(); }
  [[nodiscard]] std::string text() const { return sentences_.empty() ? "" : sentences_.front(); }

private:
  std::mutex mutex_;
  std::vector<std::string> sentences_;
};

Key key_of(int number);
Metadata metadata_of(int number);
std::string payload_of(int number, std::size_t bytes = 12'000); // different for every number
// The entry of `number` is there, whole; throws when something else is.
bool has(Store& store, int number, std::size_t bytes = 12'000);
bool keep(Store& store, int number, std::size_t bytes = 12'000);

// The same with a store opened for it alone.
bool has_once(const Location& location, int number);
bool keep_once(const Location& location, int number);

// Forks; the child's exit status says whether `work` returned true (0) or false or threw (1).
pid_t start_child(const std::function<bool()>& work);
bool succeeded(pid_t child); // waits
inline bool in_child(const std::function<bool()>& work) {
  return succeeded(start_child(work));
}

std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view bytes);
bool exists(const std::string& path);
std::vector<std::string> names_in(const std::string& directory);
void append_line(const std::string& path, std::string_view line); // atomic for short lines
std::size_t count_lines(const std::string& path);

// Runs SQL on a database of another connection than the store's.
void run_sql(const std::string& path, const std::string& statements);
std::int64_t ask_sql(const std::string& path, const std::string& query);

} // namespace store_test
