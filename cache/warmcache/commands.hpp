// The commands of bilogp-warmcache. Each returns what goes to stdout and the exit status; a bilogp::Error that one
// throws is a problem for stderr.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "cache/store.hpp"
#include "cache/warmcache/options.hpp"

namespace bilogp::warmcache {

using Json = nlohmann::ordered_json;

struct Answer {
  Json json;
  std::string text;   // the same for people
  std::string advice; // for stderr: what to do about a problem, else empty
  int exit_code = exit_fine;
};

Answer warm(const WarmRequest& request, cache::Store& store);
Answer list(cache::Store& store);
Answer verify(cache::Store& store);
Answer where(cache::Store& store);
Answer clear(cache::Store& store);
Answer doctor(cache::Store& store);

// The CUDA back end's part of `doctor`: driver, devices, NVRTC; appends the same for people. Compiles a kernel, into
// the library's store.
Json cuda_json(std::string& text);

// Where the store is and why, as all commands put it.
std::string place_of(const cache::Store& store);
Json place_json(const cache::Store& store);
// Why no store can be at its place, whatever the permissions, as a sentence; empty when one can.
std::string why_no_place(const cache::Store& store);
// How many kernels are stored; nothing when the store cannot be read, with the reason in `problem`.
Json count_json(cache::Store& store, std::string& problem);

} // namespace bilogp::warmcache
