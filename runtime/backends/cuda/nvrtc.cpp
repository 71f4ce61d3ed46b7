#include "runtime/backends/cuda/nvrtc.hpp"

#include <dlfcn.h>

#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cuda/driver.hpp"
#include "runtime/backends/cuda/libraries.hpp"

namespace bilogp::cuda {
namespace {

constexpr int oldest_major = 12;

// Chosen once: keys and compiles must speak of one copy.
struct Chosen {
  std::mutex mutex;
  NvrtcFile file;
  std::string identity;
  std::unique_ptr<Nvrtc> loaded;
};

Chosen& chosen() {
  static auto* instance = new Chosen; // never destroyed: NVRTC stays loaded
  return *instance;
}

int driver_version() {
  const Driver* const found = try_driver();
  return found == nullptr ? 0 : found->version;
}

// With the mutex held.
void choose(Chosen& state) {
  if (!state.file.path.empty()) return;
  state.file = find_nvrtc(driver_version());
  if (state.file.path.empty())
    throw Error(ErrorKind::compile_failed, "CUDA kernels cannot be compiled: " + state.file.reason);
  state.identity = "nvrtc " + state.file.build;
}

std::unique_ptr<Nvrtc> load(const NvrtcFile& file) {
  void* const handle = load_nvrtc(file);
  auto library = std::make_unique<Nvrtc>();
  library->path = file.path;
  std::string missing;
#define BILOGP_NVRTC_LOOK_UP(name, symbol, arguments)                                                                  \
  library->name = reinterpret_cast<decltype(library->name)>(dlsym(handle, symbol));                                    \
  if (library->name == nullptr) missing = symbol;
  BILOGP_NVRTC_FUNCTIONS(BILOGP_NVRTC_LOOK_UP)
#undef BILOGP_NVRTC_LOOK_UP
  library->get_error_string =
      reinterpret_cast<decltype(library->get_error_string)>(dlsym(handle, "nvrtcGetErrorString"));
  int major = 0;
  int minor = 0;
  if (library->get_version != nullptr) library->get_version(&major, &minor);
  if (!missing.empty() || library->get_error_string == nullptr || major < oldest_major)
    throw Error(ErrorKind::compile_failed,
                fmt::format("CUDA kernels cannot be compiled: {} is NVRTC {}.{}; expected 12.0 or newer, as in `pip "
                            "install nvidia-cuda-nvrtc`",
                            file.path, major, minor));
  library->version = fmt::format("{}.{}", major, minor);
  int count = 0;
  library->get_arch_count(&count);
  library->archs.resize(static_cast<std::size_t>(count));
  library->get_archs(library->archs.data());
  return library;
}

} // namespace

const Nvrtc& nvrtc() {
  Chosen& state = chosen();
  const std::scoped_lock lock(state.mutex);
  choose(state);
  if (!state.loaded) state.loaded = load(state.file);
  return *state.loaded;
}

const std::string& nvrtc_identity() {
  Chosen& state = chosen();
  const std::scoped_lock lock(state.mutex);
  choose(state);
  return state.identity;
}

NvrtcStatus nvrtc_status() {
  Chosen& state = chosen();
  const std::scoped_lock lock(state.mutex);
  try {
    choose(state);
  } catch (const Error& error) {
    return {false, "", error.what()};
  }
  return {true, state.file.path, ""};
}

} // namespace bilogp::cuda
