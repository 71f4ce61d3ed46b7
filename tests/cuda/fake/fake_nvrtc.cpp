#include "tests/cuda/fake/fake_nvrtc.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

using fake::NvrtcState;

namespace {

struct Program {
  std::vector<std::string> files;
  std::string image, ptx;
};

std::mutex& mutex() {
  static auto* one = new std::mutex;
  return *one;
}

NvrtcState* made() {
  auto* const state = new NvrtcState;
  const char* const version = std::getenv("FAKE_NVRTC_VERSION");
  if (version == nullptr) return state;
  char* rest = nullptr;
  state->major = static_cast<int>(std::strtol(version, &rest, 10));
  state->minor = *rest == '.' ? static_cast<int>(std::strtol(rest + 1, nullptr, 10)) : 0;
  return state;
}

NvrtcState& state() {
  static NvrtcState* const one = made();
  return *one;
}

int put(const std::string& text, char* to) {
  std::ranges::copy(text, to);
  return 0;
}

} // namespace

// NOLINTBEGIN(readability-identifier-naming): NVRTC's names
extern "C" {

NvrtcState* fake_nvrtc_state() {
  return &state();
}

int nvrtcVersion(int* major, int* minor) {
  *major = state().major;
  *minor = state().minor;
  return 0;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(state().archs.size());
  return 0;
}
int nvrtcGetSupportedArchs(int* archs) {
  for (const int arch : state().archs) *archs++ = arch;
  return 0;
}
const char* nvrtcGetErrorString(int result) {
  return result == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

int nvrtcCreateProgram(Program** program, const char*, const char* name, int count, const char* const*,
                       const char* const* header_names) {
  *program = new Program{{name}, {}, {}};
  for (int i = 0; i < count; ++i) (*program)->files.emplace_back(header_names[i]);
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  const std::scoped_lock lock(mutex());
  ++state().compiles;
  state().files = program->files;
  state().options.assign(options, options + count);
  std::string all;
  for (int i = 0; i < count; ++i) {
    const std::string option = options[i];
    constexpr const char* architecture = "--gpu-architecture=";
    all += " " + (option.starts_with(architecture) ? option.substr(std::strlen(architecture)) : option);
  }
  program->image = "\x7f"
                   "ELF" +
                   program->files.front() + all;
  program->ptx = ".version 8.0 " + program->files.front() + all;
  return state().result;
}
int nvrtcGetProgramLogSize(Program*, std::size_t* size) {
  *size = state().log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program*, char* log) {
  std::memcpy(log, state().log.c_str(), state().log.size() + 1);
  return 0;
}
int nvrtcGetCUBINSize(Program* program, std::size_t* size) {
  *size = program->image.size();
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* bytes) {
  return put(program->image, bytes);
}
int nvrtcGetPTXSize(Program* program, std::size_t* size) {
  *size = program->ptx.size();
  return 0;
}
int nvrtcGetPTX(Program* program, char* bytes) {
  return put(program->ptx, bytes);
}

} // extern "C"
// NOLINTEND(readability-identifier-naming)
