#include "cache/location.hpp"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include "cache/directory.hpp"

namespace bilogp::cache {

namespace {

constexpr std::int64_t default_maximal_bytes = 256'000'000;

std::string home_of_passwd() {
  long size = ::sysconf(_SC_GETPW_R_SIZE_MAX);
  std::vector<char> buffer(size > 0 ? static_cast<std::size_t>(size) : 16384);
  passwd entry;
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found || !found->pw_dir)
    return "";
  return found->pw_dir;
}

// Set and not empty.
std::optional<std::string> value_of(const Surroundings& surroundings, const char* name) {
  auto value = surroundings.variable(name);
  if (value && value->empty()) value.reset();
  return value;
}

bool is_absolute(const std::string& path) {
  return !path.empty() && path.front() == '/';
}

std::string made_absolute(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  std::string text = error ? path : absolute.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

struct Candidate {
  std::string directory;
  const char* reason;
};

// The usual places in order, the unusable ones left out.
std::optional<Candidate> usual_place(const Surroundings& surroundings) {
  if (const auto xdg = value_of(surroundings, "XDG_CACHE_HOME"); xdg && is_absolute(*xdg))
    if (const std::string place = made_absolute(*xdg + "/bilogp"); store_could_live_in(place, store_file_name))
      return Candidate{place, "XDG_CACHE_HOME"};
  const auto below_home = [](const std::string& home) -> std::string {
    // A home that is not there is not to be made: build sandboxes and unmapped users have such.
    if (!is_absolute(home) || !is_directory(home)) return "";
    const std::string place = made_absolute(home + "/.cache/bilogp");
    return store_could_live_in(place, store_file_name) ? place : "";
  };
  if (const auto home = value_of(surroundings, "HOME"))
    if (const std::string place = below_home(*home); !place.empty()) return Candidate{place, "HOME"};
  if (const std::string place = below_home(surroundings.passwd_home()); !place.empty())
    return Candidate{place, "passwd"};
  return std::nullopt;
}

Location node_local_place(const Surroundings& surroundings, const std::string& note) {
  const std::string temporary = value_of(surroundings, "TMPDIR").value_or("/tmp");
  const std::string place = made_absolute(fmt::format("{}/bilogp-{}", temporary, surroundings.user));
  if (const std::string why = why_not_private(place, surroundings.user); !why.empty())
    return {"", fmt::format("{} must be a directory of this user alone, but {}", place, why), note};
  if (!is_directory(temporary) || !store_could_live_in(place, store_file_name))
    return {"", fmt::format("no directory for it can be written, {} neither", place), note};
  return {place, "TMPDIR", note};
}

} // namespace

Surroundings process_surroundings() {
  Surroundings surroundings;
  surroundings.variable = [](const char* name) -> std::optional<std::string> {
    // The store holds machine code: a privileged program must not be led to another one.
    const char* value = ::secure_getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
  surroundings.passwd_home = home_of_passwd;
  surroundings.on_network = is_on_network;
  surroundings.user = ::geteuid();
  return surroundings;
}

Location locate(const Surroundings& surroundings) {
  if (const auto named = value_of(surroundings, "BILOGP_CACHE_DIR")) {
    if (*named == ":memory:") return {"", "BILOGP_CACHE_DIR", ""};
    return {made_absolute(*named), "BILOGP_CACHE_DIR", ""};
  }
  const auto usual = usual_place(surroundings);
  if (!usual) return node_local_place(surroundings, "");
  if (!surroundings.on_network(usual->directory)) return {usual->directory, usual->reason, ""};
  return node_local_place(surroundings, usual->directory + " is on a network file system");
}

Location default_location() {
  return locate(process_surroundings());
}

bool asked_for_memory(const Location& location) {
  return location.directory.empty() && location.reason == "BILOGP_CACHE_DIR";
}

std::int64_t maximal_bytes(const Surroundings& surroundings, std::string& complaint) {
  const auto text = value_of(surroundings, "BILOGP_CACHE_MAX_BYTES");
  if (!text) return default_maximal_bytes;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size() && value > 0) return value;
  complaint = fmt::format("BILOGP_CACHE_MAX_BYTES is '{}' and must be a positive whole number of bytes; {} is used",
                          *text, default_maximal_bytes);
  return default_maximal_bytes;
}

} // namespace bilogp::cache
