#include <cstdlib>
#include <string>

#include <link.h>
#include <unistd.h>

#include <fmt/format.h>

#include "bilogp/runtime.hpp"
#include "bilogp/version.hpp"
#include "cache/directory.hpp"
#include "cache/location.hpp"
#include "cache/sqlite.hpp"
#include "cache/warmcache/commands.hpp"
#include "runtime/backends/cpu/compiler.hpp"
#include "runtime/backends/cpu/targets.hpp"
#include "runtime/score/text_table.hpp"

namespace bilogp::warmcache {

namespace {

// Where the compiler component was loaded from; empty when it was not.
std::string component_path() {
  std::string path;
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* found) {
        const std::string name = object->dlpi_name != nullptr ? object->dlpi_name : "";
        if (name.find("/libbilogp_clang.so") != std::string::npos) *static_cast<std::string*>(found) = name;
        return 0;
      },
      &path);
  return path;
}

struct CpuBackEnd {
  bool compiles = false;
  double seconds = 0; // of compiling one kernel, the component's loading included
  std::string reason; // when it does not
  std::string component;
};

// Compiles a kernel, so that what is said is what happens. The library gets a store in memory for it: the user's own is
// left alone, and cannot answer instead of the compiler.
CpuBackEnd try_cpu() {
  CpuBackEnd result;
  ::setenv("BILOGP_CACHE_DIR", ":memory:", 1); // the one thread of this program, before the library's first look
  try {
    const Specialization small{Operator::logp_finish, DType::float32, DType::int64, 0, Numerics::portable, 0};
    const WarmupReport report = Runtime::get("cpu").warmup({&small, 1});
    result.compiles = true;
    result.seconds = report.kernels.at(0).seconds;
  } catch (const Error& error) {
    result.reason = error.what();
  }
  result.component = component_path();
  return result;
}

Json levels_json(std::string& text) {
  Json levels = Json::array();
  for (const std::string& level : cpu::known_levels()) {
    std::string missing;
    const bool runs = cpu::runs_here(cpu::resolve_target(level), &missing);
    levels.push_back({{"target", "cpu:" + level}, {"runs_here", runs}, {"missing", missing}});
    text += fmt::format("    cpu:{:<11} {}\n", level,
                        runs ? "runs here" : "can be compiled and stored; this machine lacks " + missing);
  }
  return levels;
}

Json cpu_json(const CpuBackEnd& back_end, std::string& text) {
  const std::string own(Runtime::get("cpu").target());
  if (back_end.compiles)
    text += fmt::format("  cpu   works: {}, one kernel compiled in {}\n    component {}\n", cpu::compiler_version(),
                        score::duration_text(back_end.seconds), back_end.component);
  else
    text += fmt::format("  cpu   runs stored kernels only: {}\n", back_end.reason);
  text += fmt::format("    this machine is {}\n    it has {}\n", own, cpu::host_features());
  Json json = {{"name", "cpu"},
               {"available", true},
               {"compiles", back_end.compiles},
               {"reason", back_end.reason},
               {"compiler", cpu::compiler_version()},
               {"component", back_end.component.empty() ? Json(nullptr) : Json(back_end.component)},
               {"host_target", own},
               {"host_features", cpu::host_features()}};
  json["targets"] = levels_json(text);
  return json;
}

Json missing_json(const char* name, std::string& text) {
  constexpr const char* reason = "not built: this version of bilogp has the cpu and cuda back ends";
  text += fmt::format("  {:<5} {}\n", name, reason);
  return {{"name", name}, {"available", false}, {"compiles", false}, {"reason", reason}};
}

// Whether a kernel could be put there now.
bool is_writable(const cache::Store& store) {
  const std::string& directory = store.location().directory;
  if (directory.empty() || !cache::store_could_live_in(directory, cache::store_file_name)) return false;
  if (::access(cache::existing_ancestor(directory).c_str(), W_OK | X_OK) != 0) return false;
  return store.file_bytes() == 0 || ::access(store.file().c_str(), W_OK) == 0;
}

Json store_json(cache::Store& store, std::string& text, std::string& problem) {
  const bool writable = is_writable(store);
  std::string unreadable;
  const Json count = count_json(store, unreadable);
  Json json = place_json(store);
  json["writable"] = writable;
  json["kernels"] = count;
  json["problem"] = unreadable;
  text += fmt::format("Store: {}\n  {}, {}, {}\n", place_of(store), writable ? "writable" : "not writable",
                      count.is_null() ? "kernels unknown" : score::counted(count.get<std::int64_t>(), "kernel"),
                      score::counted(store.file_bytes(), "byte"));
  // Bugs of the write-ahead log, which SQLite before 3.51.3 has, do not matter to a rollback journal.
  text += fmt::format("  SQLite {}, rollback journal (TRUNCATE)\n", cache::sqlite::library_version());
  json["sqlite_version"] = cache::sqlite::library_version();
  json["journal_mode"] = "truncate";
  problem = unreadable.empty() ? why_no_place(store) : unreadable;
  if (problem.empty() && !writable && !cache::asked_for_memory(store.location()))
    problem = "kernels cannot be stored: make the store's directory writable, or name another in BILOGP_CACHE_DIR";
  return json;
}

} // namespace

Answer doctor(cache::Store& store) {
  Answer answer;
  std::string problem;
  answer.text = fmt::format("bilogp {}, contract {}\n", version(), contract_id());
  const Json store_part = store_json(store, answer.text, problem);
  answer.text += "Back ends:\n";
  const CpuBackEnd cpu = try_cpu();
  Json back_ends = Json::array();
  back_ends.push_back(cpu_json(cpu, answer.text));
  back_ends.push_back(cuda_json(answer.text));
  back_ends.push_back(missing_json("hip", answer.text));
  answer.json = {{"version", version()},
                 {"contract_id", contract_id()},
                 {"store", store_part},
                 {"back_ends", std::move(back_ends)}};
  answer.advice = problem;
  if (!cpu.compiles) answer.advice += (answer.advice.empty() ? "" : "\n") + cpu.reason;
  if (!answer.advice.empty()) answer.exit_code = exit_problem;
  return answer;
}

} // namespace bilogp::warmcache
