// An NVRTC that compiles nothing: it answers with a text that the fake driver takes for machine code or PTX.
#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace fake {

struct NvrtcState {
  int major = 13, minor = 0; // FAKE_NVRTC_VERSION="12.0" sets them as well
  std::vector<int> archs = {75, 80, 86, 89, 90, 100};
  int result = 0; // of the next compiles
  std::string log;
  std::atomic<int> compiles = 0;
  std::vector<std::string> options; // of the last compile
  std::vector<std::string> files;   // that it was given, the main one first
};

using NvrtcStateFunction = NvrtcState* (*)();
constexpr const char* nvrtc_state_function = "fake_nvrtc_state";

} // namespace fake
