#include "runtime/backends/cpu/component_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "bilogp/error.hpp"

namespace bilogp::cpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "libbilogp_clang.so";
constexpr const char* override_variable = "BILOGP_CLANG_COMPONENT";

#ifdef BILOGP_CLANG_VERSION
constexpr std::string_view built_with = BILOGP_CLANG_VERSION;
#else
constexpr std::string_view built_with;
#endif

// The directory of the library, or program, that this code is part of.
fs::path own_directory() {
  static const char inside = 0;
  Dl_info info = {};
  void* extra = nullptr;
  if (dladdr1(&inside, &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) return {};
  const char* name = static_cast<const link_map*>(extra)->l_name;
  // The program itself has an empty name in the list of loaded objects.
  std::error_code ignored;
  const fs::path file =
      name == nullptr || *name == '\0' ? fs::read_symlink("/proc/self/exe", ignored) : fs::canonical(name, ignored);
  return file.parent_path();
}

std::vector<fs::path> places() {
  if (const char* named = std::getenv(override_variable); named != nullptr && *named != '\0') return {fs::path(named)};
  const fs::path directory = own_directory();
  if (directory.empty()) return {};
  return {directory / file_name, directory / "bilogp" / file_name};
}

std::string what_to_install() {
  if (built_with.empty())
    return "this build has none, because LLVM and clang 19 or 22 were not there when it was configured: install the "
           "packages llvm-19-dev, libclang-19-dev and libclang-cpp19-dev and build bilogp again";
  const std::string_view major = built_with.substr(0, built_with.find('.'));
  return fmt::format("install it beside the bilogp library or name it in {} (building it takes the packages "
                     "llvm-{}-dev, libclang-{}-dev and libclang-cpp{}-dev)",
                     override_variable, major, major, major);
}

[[noreturn]] void cannot_compile(const std::string& why) {
  throw Error(ErrorKind::compile_failed, "kernels cannot be compiled: " + why);
}

// Whether memory given out by the component's libraries and by the program come from the same functions.
bool same_allocator() {
  const auto same = [](const char* symbol, const char* library) {
    void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return false;
    const bool is_same = dlsym(RTLD_DEFAULT, symbol) == dlsym(handle, symbol);
    dlclose(handle);
    return is_same;
  };
  return same("malloc", "libc.so.6") && same("free", "libc.so.6") && same("_Znwm", "libstdc++.so.6") &&
         same("_ZdlPv", "libstdc++.so.6");
}

// A program may hold another LLVM: RTLD_DEEPBIND makes the component's libraries see their own symbols first. It also
// makes them pass by a program's own malloc or operator new (jemalloc, sanitizers), so it is left out with these.
int load_flags() {
  int flags = RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE;
  if (same_allocator()) flags |= RTLD_DEEPBIND;
  return flags;
}

template<class Function> Function required(void* handle, const char* name, const std::string& path) {
  void* address = dlsym(handle, name);
  if (address == nullptr) cannot_compile(path + " has no function " + name + "; it is not of this bilogp");
  return reinterpret_cast<Function>(address);
}

ComponentLibrary load() {
  const ComponentStatus status = find_component();
  if (!status.found) cannot_compile(status.reason);
  void* handle = dlopen(status.path.c_str(), load_flags());
  if (handle == nullptr) {
    const std::string_view major = built_with.substr(0, built_with.find('.'));
    const char* why = dlerror();
    cannot_compile(fmt::format("the compiler component {} does not load ({}); install the packages libllvm{} and "
                               "libclang-cpp{}",
                               status.path, why == nullptr ? "no reason given" : why, major, major));
  }
  const auto interface = required<decltype(&bilogp_clang_interface)>(handle, "bilogp_clang_interface", status.path)();
  if (interface != BILOGP_CLANG_INTERFACE)
    cannot_compile(fmt::format("{} has interface {} where {} was expected; install the component of this bilogp",
                               status.path, interface, BILOGP_CLANG_INTERFACE));
  const std::string_view version =
      required<decltype(&bilogp_clang_version)>(handle, "bilogp_clang_version", status.path)();
  if (version != built_with)
    cannot_compile(fmt::format("{} runs clang {} but this bilogp was built for clang {}, under which its kernels are "
                               "kept; build bilogp again or install clang {}",
                               status.path, version, built_with, built_with));
  return {required<decltype(&bilogp_clang_compile)>(handle, "bilogp_clang_compile", status.path),
          required<decltype(&bilogp_clang_free)>(handle, "bilogp_clang_free", status.path)};
}

} // namespace

ComponentStatus find_component() {
  ComponentStatus status;
  std::string looked;
  for (const fs::path& place : places()) {
    std::error_code ignored;
    if (fs::is_regular_file(place, ignored)) {
      status.found = true;
      status.path = place.string();
      return status;
    }
    looked += (looked.empty() ? "" : ", ") + place.string();
  }
  status.reason =
      fmt::format("the compiler component {} was not found (looked at {}); {}", file_name, looked, what_to_install());
  return status;
}

const ComponentLibrary& component_library(double& seconds) {
  static std::mutex mutex;
  static ComponentLibrary library;
  const std::scoped_lock lock(mutex);
  seconds = 0;
  if (library.compile == nullptr) {
    const auto begin = std::chrono::steady_clock::now();
    library = load();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  return library;
}

} // namespace bilogp::cpu
