// Without a device: where the driver and NVRTC are looked for, and what is said where they are not.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <dlfcn.h>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cuda/build_id.hpp"
#include "runtime/backends/cuda/driver.hpp"
#include "runtime/backends/cuda/libraries.hpp"

namespace {

namespace cuda = bilogp::cuda;
namespace fs = std::filesystem;

// Variables of the environment for a while; null unsets.
class Environment {
public:
  Environment() = default;
  ~Environment() {
    for (auto at = before_.rbegin(); at != before_.rend(); ++at) put(at->first, at->second);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  void set(const char* name, std::optional<std::string> value) {
    const char* const old = std::getenv(name);
    before_.emplace_back(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    put(name, value);
  }

private:
  static void put(const std::string& name, const std::optional<std::string>& value) {
    if (value)
      ::setenv(name.c_str(), value->c_str(), 1);
    else
      ::unsetenv(name.c_str());
  }
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

// A directory of its own, gone at the end.
class TemporaryDirectory {
public:
  TemporaryDirectory() {
    std::string pattern = (fs::temp_directory_path() / "bilogp-libraries-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return (path_ / name).string(); }
  // A file that is looked for and not opened.
  std::string file(const std::string& name) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << "not a library\n";
    return path(name);
  }

private:
  fs::path path_;
};

// Nothing of the user's own is found.
void forget_users_places(Environment& environment, const TemporaryDirectory& directory) {
  for (const char* const name :
       {"BILOGP_NVRTC", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH"})
    environment.set(name, std::nullopt);
  environment.set("HOME", directory.path("home"));
}

} // namespace

TEST_CASE("libraries: pip's packages, the one of the driver's own version first") {
  const TemporaryDirectory directory;
  Environment environment;
  forget_users_places(environment, directory);
  const std::string of_12 = directory.file("site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  environment.set("PYTHONPATH", "/no/such/place::" + directory.path("site"));
  const std::string of_13 = directory.file("site/nvidia/cu13/lib/libnvrtc.so.13");
  static_cast<void>(directory.file("site/nvidia/cu13/lib/libnvrtc-builtins.so.13.0.88"));
  CHECK(cuda::find_nvrtc(12040).path == of_12);
  CHECK(cuda::find_nvrtc(0).path == of_13);
  const cuda::NvrtcFile file = cuda::find_nvrtc(13010);
  CHECK(file.path == of_13);
  CHECK(file.build.starts_with("13.0 "));
  CHECK_FALSE(file.is_loaded);
  for (const char* const variable : {"VIRTUAL_ENV", "CONDA_PREFIX", "HOME"}) {
    CAPTURE(variable);
    Environment other;
    other.set("PYTHONPATH", std::nullopt);
    const std::string root = directory.path(variable);
    const bool is_home = std::string_view(variable) == "HOME";
    const std::string path = directory.file(fmt::format(
        "{}{}/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13", variable, is_home ? "/.local" : ""));
    other.set(variable, root);
    CHECK(cuda::find_nvrtc(13000).path == path);
  }
}

TEST_CASE("libraries: the system's come behind pip's packages, a toolkit's behind the system's") {
  const TemporaryDirectory directory;
  Environment environment;
  forget_users_places(environment, directory);
  const std::string toolkit = directory.file("toolkit/lib64/libnvrtc.so.13");
  const std::string before = cuda::find_nvrtc(13000).path;
  const bool has_toolkit = before.starts_with("/usr/local/cuda");
  if (!before.empty() && !has_toolkit) {
    MESSAGE("not tried: this machine has " << before);
    return;
  }
  for (const char* const variable : {"CUDA_PATH", "CUDA_HOME"}) {
    Environment other;
    other.set(variable, directory.path("toolkit"));
    CHECK(cuda::find_nvrtc(13000).path == toolkit);
  }
  environment.set("CUDA_HOME", directory.path("toolkit"));
  const std::string system = directory.file("system/libnvrtc.so.12");
  environment.set("LD_LIBRARY_PATH", directory.path("empty") + ":" + directory.path("system"));
  CHECK(cuda::find_nvrtc(13000).path == system);
  const std::string wheel = directory.file("site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  environment.set("PYTHONPATH", directory.path("site"));
  CHECK(cuda::find_nvrtc(13000).path == wheel);
  CHECK_FALSE(cuda::find_nvrtc(13000).is_loaded); // looking loads nothing
}

TEST_CASE("libraries: where there is none, the places and what to install") {
  const TemporaryDirectory directory;
  Environment environment;
  forget_users_places(environment, directory);
  environment.set("PYTHONPATH", directory.path("site"));
  const cuda::NvrtcFile file = cuda::find_nvrtc(13000);
  if (!file.path.empty()) {
    MESSAGE("not tried: this machine has " << file.path);
    return;
  }
  for (const std::string& part : {directory.path("site/nvidia/cu13/lib"), std::string("/usr/local/cuda/lib64"),
                                  std::string("pip install nvidia-cuda-nvrtc"), std::string("BILOGP_NVRTC")})
    CHECK(file.reason.find(part) != std::string::npos);
}

TEST_CASE("libraries: what is named but not there is said, with what to do") {
  Environment environment;
  environment.set("BILOGP_NVRTC", "/no/such/place");
  const cuda::NvrtcFile file = cuda::find_nvrtc(0);
  CHECK(file.path.empty());
  CHECK(file.reason.find("/no/such/place") != std::string::npos);
  CHECK_THROWS_AS(cuda::load_nvrtc(file), bilogp::Error);
  const TemporaryDirectory directory;
  static_cast<void>(directory.file("libnvrtc.so.13")); // there, but no library
  environment.set("BILOGP_NVRTC", directory.path(""));
  try {
    cuda::load_nvrtc(cuda::find_nvrtc(0));
    FAIL_CHECK("it loads");
  } catch (const bilogp::Error& error) {
    CHECK(error.kind() == bilogp::ErrorKind::compile_failed);
    CHECK(std::string_view(error.what()).find("does not load") != std::string_view::npos);
  }
  environment.set("BILOGP_CUDA_DRIVER", "/no/such/libcuda.so");
  std::string why;
  CHECK(cuda::try_driver(&why) == nullptr);
  CHECK(why.find("/no/such/libcuda.so") != std::string::npos);
  CHECK(why.find("NVIDIA driver") != std::string::npos);
  // A library that is no driver.
  environment.set("BILOGP_CUDA_DRIVER", "libm.so.6");
  CHECK(cuda::try_driver(&why) == nullptr);
  CHECK(why.find("12.0 or newer") != std::string::npos);
  // What a toolkit has for linkers.
  fs::create_directories(directory.path("stubs"));
  fs::copy_file(BILOGP_FAKE_DRIVER, directory.path("stubs/libcuda.so.1"));
  environment.set("BILOGP_CUDA_DRIVER", directory.path("stubs/libcuda.so.1"));
  CHECK(cuda::try_driver(&why) == nullptr);
  CHECK(why.find("stub") != std::string::npos);
}

TEST_CASE("libraries: a build is told from another by its file") {
  const std::string own = cuda::identity_of_library("/proc/self/exe");
  CHECK_FALSE(own.empty());
  CHECK(own == cuda::identity_of_library("/proc/self/exe"));
  CHECK(cuda::identity_of_library("/no/such/file").empty());
  CHECK_FALSE(cuda::identity_of_library("/proc/self/cmdline") == own);
}

// The last of these: under a sanitizer a library stays once it is loaded.
TEST_CASE("libraries: one that the process has loaded goes before those that lie about, the one named before all") {
  const TemporaryDirectory directory;
  Environment environment;
  forget_users_places(environment, directory);
  static_cast<void>(directory.file("site/nvidia/cu13/lib/libnvrtc.so.13"));
  environment.set("PYTHONPATH", directory.path("site"));
  if (cuda::find_nvrtc(13000).is_loaded) {
    MESSAGE("not tried: this process has one already");
    return;
  }
  void* const library = ::dlopen(BILOGP_FAKE_NVRTC, RTLD_LAZY | RTLD_LOCAL); // which says that it is libnvrtc.so.13
  REQUIRE(library != nullptr);
  const cuda::NvrtcFile loaded = cuda::find_nvrtc(12080);
  CHECK(loaded.path == BILOGP_FAKE_NVRTC);
  CHECK(loaded.is_loaded);
  const std::string own = directory.file("own/libnvrtc.so.12");
  for (const std::string& name : {directory.path("own"), own}) {
    environment.set("BILOGP_NVRTC", name);
    CHECK(cuda::find_nvrtc(13000).path == own);
  }
  environment.set("BILOGP_NVRTC", std::nullopt);
  ::dlclose(library);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK_FALSE(cuda::find_nvrtc(13000).is_loaded); // looking has not kept it
#endif
}
