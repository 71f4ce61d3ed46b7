#include "support.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace store_test {

ScratchDirectory::ScratchDirectory() {
  // In memory where there is such a place: thousands of small transactions need not wait for a disk.
  const std::filesystem::path in_memory = "/dev/shm";
  const bool usable = !std::getenv("TMPDIR") && ::access(in_memory.c_str(), W_OK | X_OK) == 0;
  std::string name = ((usable ? in_memory : std::filesystem::temp_directory_path()) / "bilogp-test-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("cannot make a scratch directory");
  ::chmod(name.c_str(), 0755); // other users take part in some tests
  path_ = name;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

Key key_of(int number) {
  Key key;
  key.add("backend", "test").add("number", std::to_string(number));
  return key;
}

Metadata metadata_of(int number) {
  return {"test", "x86-64-v3", "clang 19.1.7", fmt::format("kernel {}", number), 1000 + number};
}

std::string payload_of(int number, std::size_t bytes) {
  std::mt19937 random(static_cast<unsigned>(number) * 2654435761u + 1u);
  std::string payload(bytes, '\0');
  for (char& byte : payload) byte = static_cast<char>(random() >> 7);
  return payload;
}

bool has(Store& store, int number, std::size_t bytes) {
  const auto entry = store.get(key_of(number));
  if (!entry) return false;
  const Metadata expected = metadata_of(number);
  if (entry->payload != payload_of(number, bytes) || entry->metadata.description != expected.description ||
      entry->metadata.compile_microseconds != expected.compile_microseconds ||
      entry->metadata.target != expected.target || entry->metadata.backend != expected.backend ||
      entry->metadata.compiler != expected.compiler)
    throw std::runtime_error(fmt::format("entry {} is not what was put", number));
  return true;
}

bool keep(Store& store, int number, std::size_t bytes) {
  return store.put(key_of(number), metadata_of(number), payload_of(number, bytes));
}

bool has_once(const Location& location, int number) {
  Store store(location, {});
  return has(store, number);
}

bool keep_once(const Location& location, int number) {
  Store store(location, {});
  return keep(store, number);
}

pid_t start_child(const std::function<bool()>& work) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child > 0) return child;
  bool good = false;
  try {
    good = work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "in a child: %s\n", error.what());
  }
  ::_exit(good ? 0 : 1); // no destructors of the parent's objects, no report of doctest's
}

bool succeeded(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("the child is lost");
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void append_line(const std::string& path, std::string_view line) {
  const std::string text = std::string(line) + '\n';
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  const bool written = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  if (!written) throw std::runtime_error("cannot append to " + path);
}

std::size_t count_lines(const std::string& path) {
  const std::string text = read_file(path);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

namespace {

template<class Use> void with_database(const std::string& path, const Use& use) {
  sqlite3* database = nullptr;
  int code = sqlite3_open(path.c_str(), &database);
  if (code == SQLITE_OK) code = use(database);
  const std::string message = sqlite3_errmsg(database);
  sqlite3_close(database);
  if (code != SQLITE_OK) throw std::runtime_error(path + ": " + message);
}

} // namespace

void run_sql(const std::string& path, const std::string& statements) {
  with_database(
      path, [&](sqlite3* database) { return sqlite3_exec(database, statements.c_str(), nullptr, nullptr, nullptr); });
}

std::int64_t ask_sql(const std::string& path, const std::string& query) {
  std::int64_t answer = 0;
  with_database(path, [&](sqlite3* database) {
    sqlite3_stmt* statement = nullptr;
    int code = sqlite3_prepare_v2(database, query.c_str(), -1, &statement, nullptr);
    if (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) answer = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return code;
  });
  return answer;
}

} // namespace store_test
