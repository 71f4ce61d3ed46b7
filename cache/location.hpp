// The rules of `default_location`, with what they ask of the system as functions.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

#include "cache/store.hpp"

namespace bilogp::cache {

inline constexpr char store_file_name[] = "kernels-v1.db"; // the number is that of the schema

struct Surroundings {
  std::function<std::optional<std::string>(const char* name)> variable; // of the environment
  std::function<std::string()> passwd_home;                             // empty when the user has none
  std::function<bool(const std::string& path)> on_network;
  uid_t user = 0;
};

Surroundings process_surroundings();
Location locate(const Surroundings& surroundings);

// Memory only because the user said so: nothing to warn about.
bool asked_for_memory(const Location& location);

// BILOGP_CACHE_MAX_BYTES, or 256 MB; `complaint` gets a sentence when the variable makes no sense.
std::int64_t maximal_bytes(const Surroundings& surroundings, std::string& complaint);

} // namespace bilogp::cache
