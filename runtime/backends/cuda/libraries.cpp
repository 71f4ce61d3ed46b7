#include "runtime/backends/cuda/libraries.hpp"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cuda/build_id.hpp"

namespace bilogp::cuda {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> matches(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found = {};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  return paths;
}

std::string path_of(void* handle) {
  const link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map == nullptr || map->l_name == nullptr)
    return {};
  return map->l_name;
}

fs::path own_directory() {
  static const char inside = 0;
  Dl_info info = {};
  if (dladdr(&inside, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  return fs::weakly_canonical(info.dli_fname, ignored).parent_path();
}

// The directories that a variable names, colons between them.
void add_path_list(const char* variable, std::vector<std::string>& directories) {
  const std::string named = environment(variable);
  std::string_view paths = named;
  while (!paths.empty()) {
    const std::size_t end = std::min(paths.find(':'), paths.size());
    if (end > 0) directories.emplace_back(paths.substr(0, end));
    paths.remove_prefix(std::min(end + 1, paths.size()));
  }
}

// Directories that hold Python packages and belong to this process: its environment's, this library's own, the user's,
// the system's.
std::vector<std::string> package_directories() {
  std::vector<std::string> directories;
  const auto add = [&](const std::string& pattern) {
    for (const std::string& path : matches(pattern)) directories.push_back(path);
  };
  for (fs::path at = own_directory(); at.has_relative_path(); at = at.parent_path())
    if (at.filename() == "site-packages" || at.filename() == "dist-packages") directories.push_back(at.string());
  add_path_list("PYTHONPATH", directories);
  for (const char* const prefix : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string root = environment(prefix); !root.empty()) add(root + "/lib/python3*/site-packages");
  if (const std::string home = environment("HOME"); !home.empty()) add(home + "/.local/lib/python3*/site-packages");
  add("/usr/local/lib/python3*/site-packages");
  add("/usr/local/lib/python3*/dist-packages");
  add("/usr/lib/python3/dist-packages");
  return directories;
}

std::vector<std::string> nvrtc_names(int driver_version) {
  if (driver_version >= 12000 && driver_version < 13000) return {"libnvrtc.so.12", "libnvrtc.so.13"};
  return {"libnvrtc.so.13", "libnvrtc.so.12"};
}

// "13.0" from the name of the file that NVRTC keeps its built-in functions in; empty when it is not there.
std::string version_beside(const fs::path& nvrtc) {
  constexpr std::string_view stem = "libnvrtc-builtins.so.";
  for (const std::string& path : matches((nvrtc.parent_path() / stem).string() + "*")) {
    const std::string version = fs::path(path).filename().string().substr(stem.size());
    const std::size_t dot = version.find('.');
    if (dot != std::string::npos) return version.substr(0, version.find('.', dot + 1));
  }
  return {};
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// The first of these directories that has NVRTC under one of its names.
std::string in_directories(const std::vector<std::string>& directories, const std::vector<std::string>& names,
                           std::vector<std::string>& looked) {
  for (const std::string& name : names)
    for (const std::string& directory : directories)
      if (std::string path = (fs::path(directory) / name).string(); is_file(path)) return path;
  looked.insert(looked.end(), directories.begin(), directories.end());
  return {};
}

std::vector<std::string> wheel_directories() {
  std::vector<std::string> directories;
  for (const std::string& packages : package_directories())
    for (const char* const part : {"/nvidia/cu13/lib", "/nvidia/cu12/lib", "/nvidia/cuda_nvrtc/lib"})
      directories.push_back(packages + part);
  return directories;
}

// Looked at as files first: what the loader finds it also loads, which takes ten milliseconds and more.
std::vector<std::string> system_directories() {
  std::vector<std::string> directories;
  add_path_list("LD_LIBRARY_PATH", directories);
#if defined(__aarch64__)
  directories.emplace_back("/usr/lib/aarch64-linux-gnu");
#else
  directories.emplace_back("/usr/lib/x86_64-linux-gnu");
#endif
  for (const char* const path : {"/usr/lib64", "/usr/lib", "/usr/local/lib"}) directories.emplace_back(path);
  return directories;
}

std::vector<std::string> toolkit_directories() {
  std::vector<std::string> roots;
  for (const char* const variable : {"CUDA_HOME", "CUDA_PATH"})
    if (std::string root = environment(variable); !root.empty()) roots.push_back(std::move(root));
  roots.emplace_back("/usr/local/cuda");
  for (std::string& path : matches("/usr/local/cuda-1[23].*")) roots.push_back(std::move(path));
  std::vector<std::string> directories;
  for (const std::string& root : roots)
    for (const char* const part : {"/lib64", "/lib"}) directories.push_back(root + part);
  return directories;
}

// What the loader finds by name alone, in whatever directories it is told of.
std::string by_name(const std::vector<std::string>& names, int flags, std::vector<std::string>& looked) {
  for (const std::string& name : names)
    if (void* handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL | flags); handle != nullptr) {
      const std::string path = path_of(handle);
      if ((flags & RTLD_NOLOAD) != 0) ::dlclose(handle); // keeps what somebody else holds
      return path.empty() ? name : path;
    }
  if ((flags & RTLD_NOLOAD) == 0) looked.emplace_back("the loader's directories");
  return {};
}

std::string named_nvrtc(const std::string& named, const std::vector<std::string>& names, std::string& reason) {
  std::error_code ignored;
  if (fs::is_directory(named, ignored)) {
    std::vector<std::string> looked;
    if (std::string path = in_directories({named}, names, looked); !path.empty()) return path;
  } else if (is_file(named)) {
    return named;
  }
  reason = fmt::format("BILOGP_NVRTC names {}, where there is no {}; name the file or its directory, or unset it",
                       named, fmt::join(names, " or "));
  return {};
}

} // namespace

FoundLibrary find_driver_library() {
  FoundLibrary library;
  const std::string named = environment("BILOGP_CUDA_DRIVER");
  const std::string name = named.empty() ? "libcuda.so.1" : named;
  library.handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library.handle != nullptr) {
    library.path = path_of(library.handle);
    if (library.path.find("/stubs/") == std::string::npos) return library;
    library.handle = nullptr; // of a toolkit, for linking only
    library.reason =
        fmt::format("{} is a toolkit's stub and no driver; take its directory out of LD_LIBRARY_PATH", library.path);
    return library;
  }
  const char* why = ::dlerror();
  library.reason =
      fmt::format("the driver's library {} does not load ({}); install the NVIDIA driver{}", name,
                  why == nullptr ? "no reason given" : why, named.empty() ? "" : ", or correct BILOGP_CUDA_DRIVER");
  return library;
}

NvrtcFile find_nvrtc(int driver_version) {
  const std::vector<std::string> names = nvrtc_names(driver_version);
  NvrtcFile file;
  std::vector<std::string> looked;
  if (const std::string named = environment("BILOGP_NVRTC"); !named.empty()) {
    file.path = named_nvrtc(named, names, file.reason);
    if (file.path.empty()) return file;
  } else {
    file.path = by_name(names, RTLD_NOLOAD, looked);
    file.is_loaded = !file.path.empty();
    if (file.path.empty()) file.path = in_directories(wheel_directories(), names, looked);
    if (file.path.empty()) file.path = in_directories(system_directories(), names, looked);
    if (file.path.empty()) file.path = in_directories(toolkit_directories(), names, looked);
    if (file.path.empty()) file.path = by_name(names, 0, looked);
  }
  if (file.path.empty()) {
    std::ranges::sort(looked);
    looked.erase(std::ranges::unique(looked).begin(), looked.end());
    file.reason = fmt::format("the compiler library {} was not found (looked in {}); install it with `pip install "
                              "nvidia-cuda-nvrtc`, or name its directory in BILOGP_NVRTC",
                              fmt::join(names, " or "), fmt::join(looked, ", "));
    return file;
  }
  file.build = fmt::format("{} {}", version_beside(file.path), identity_of_library(file.path));
  return file;
}

void* load_nvrtc(const NvrtcFile& file) {
  if (file.path.empty()) throw Error(ErrorKind::compile_failed, "CUDA kernels cannot be compiled: " + file.reason);
  const fs::path directory = fs::path(file.path).parent_path();
  // NVRTC looks for this one by name alone, where a pip package's directory is not searched.
  for (const std::string& builtins : matches((directory / "libnvrtc-builtins.so.*").string()))
    if (!directory.empty()) ::dlopen(builtins.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (void* handle = ::dlopen(file.path.c_str(), RTLD_LAZY | RTLD_LOCAL); handle != nullptr) return handle;
  const char* why = ::dlerror();
  throw Error(ErrorKind::compile_failed, fmt::format("CUDA kernels cannot be compiled: {} does not load ({})",
                                                     file.path, why == nullptr ? "no reason given" : why));
}

} // namespace bilogp::cuda
