// list, where and clear.
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "cache/directory.hpp"
#include "cache/warmcache/commands.hpp"
#include "runtime/score/printable.hpp"
#include "runtime/score/text_table.hpp"

namespace bilogp::warmcache {

namespace {

using score::counted;
using score::grouped;
using score::printable;

std::string date_of(std::int64_t unix_seconds) {
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "?";
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", parts);
}

std::string why_of(const cache::Location& location) {
  std::string why;
  if (location.directory.empty())
    why = location.reason == "BILOGP_CACHE_DIR" ? "BILOGP_CACHE_DIR asks for it" : location.reason;
  else if (location.reason == "passwd")
    why = "the user's home in passwd";
  else if (location.reason == "TMPDIR")
    why = "a private directory below TMPDIR or /tmp";
  else
    why = "from " + location.reason;
  return location.note.empty() ? why : why + "; " + location.note;
}

} // namespace

std::string place_of(const cache::Store& store) {
  const cache::Location& location = store.location();
  return printable(fmt::format("{} ({})", location.directory.empty() ? "memory only, nothing is kept" : store.file(),
                               why_of(location)));
}

Json place_json(const cache::Store& store) {
  const cache::Location& location = store.location();
  const bool in_memory = location.directory.empty();
  return {{"directory", in_memory ? Json(nullptr) : Json(location.directory)},
          {"file", in_memory ? Json(nullptr) : Json(store.file())},
          {"reason", location.reason},
          {"note", location.note},
          {"bytes", store.file_bytes()}};
}

std::string why_no_place(const cache::Store& store) {
  const std::string& directory = store.location().directory;
  if (directory.empty()) return "";
  const std::string place = cache::existing_ancestor(directory);
  if (cache::is_directory(place)) return "";
  return fmt::format("{} is not a directory, so there is no store and none can be made; name a directory in "
                     "BILOGP_CACHE_DIR",
                     place);
}

Json count_json(cache::Store& store, std::string& problem) {
  try {
    return store.list().size();
  } catch (const Error& error) {
    problem = error.what();
    return nullptr;
  }
}

Answer list(cache::Store& store) {
  Answer answer;
  Json entries = Json::array();
  score::TextTable table({"<kernel", "<target", "<compiler", "compiled in", "bytes", "<stored at", "<key"});
  const auto listed = store.list();
  for (const cache::ListedEntry& entry : listed) {
    const cache::Metadata& metadata = entry.metadata;
    const double seconds = 1e-6 * static_cast<double>(metadata.compile_microseconds);
    entries.push_back({{"description", metadata.description},
                       {"backend", metadata.backend},
                       {"target", metadata.target},
                       {"compiler", metadata.compiler},
                       {"compile_seconds", seconds},
                       {"bytes", entry.payload_bytes},
                       {"created", date_of(entry.created_unix)},
                       {"key_hash", entry.key_hash},
                       {"key_text", entry.key_text}});
    table.add({printable(metadata.description), printable(metadata.backend + ":" + metadata.target),
               printable(metadata.compiler), score::duration_text(seconds), grouped(entry.payload_bytes),
               date_of(entry.created_unix), entry.key_hash.substr(0, 8)});
  }
  answer.json = {{"store", place_json(store)}, {"entries", std::move(entries)}};
  answer.text = fmt::format("Store: {}\n", place_of(store));
  if (listed.empty())
    answer.text += "It has no kernels.\n";
  else
    answer.text += fmt::format("{}{}, {}\n", table.text(), counted(static_cast<std::int64_t>(listed.size()), "kernel"),
                               counted(store.file_bytes(), "byte"));
  answer.advice = why_no_place(store);
  if (!answer.advice.empty()) answer.exit_code = exit_problem;
  return answer;
}

Answer where(cache::Store& store) {
  Answer answer;
  std::string problem = why_no_place(store);
  const Json count = count_json(store, problem);
  answer.json = place_json(store);
  answer.json["kernels"] = count;
  answer.text = fmt::format("Store:   {}\nKernels: {}\nBytes:   {}\n", place_of(store),
                            count.is_null() ? "unknown" : count.dump(), grouped(store.file_bytes()));
  if (!problem.empty()) {
    answer.advice = problem;
    answer.exit_code = exit_problem;
  }
  return answer;
}

Answer clear(cache::Store& store) {
  Answer answer;
  const std::int64_t bytes = store.file_bytes();
  const std::int64_t removed = store.clear();
  const std::int64_t freed = bytes - store.file_bytes();
  answer.json = {{"store", place_json(store)}, {"removed", removed}, {"bytes_freed", freed}};
  answer.text = fmt::format("Store: {}\nRemoved {}, {} given back.\n", place_of(store), counted(removed, "kernel"),
                            counted(freed, "byte"));
  return answer;
}

} // namespace bilogp::warmcache
