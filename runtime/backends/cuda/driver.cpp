#include "runtime/backends/cuda/driver.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cuda/libraries.hpp"

namespace bilogp::cuda {
namespace {

constexpr int oldest_driver = 12000;

[[noreturn]] void unusable(const std::string& why) {
  throw Error(ErrorKind::unsupported, "the CUDA back end cannot run: " + why);
}

std::unique_ptr<Driver> load() {
  const FoundLibrary library = find_driver_library();
  if (library.handle == nullptr) unusable(library.reason);
  auto driver = std::make_unique<Driver>();
  driver->path = library.path;
  std::string missing;
#define BILOGP_CUDA_LOOK_UP(name, symbol, arguments)                                                                   \
  driver->name = reinterpret_cast<decltype(driver->name)>(dlsym(library.handle, symbol));                              \
  if (driver->name == nullptr) missing = symbol;
  BILOGP_CUDA_FUNCTIONS(BILOGP_CUDA_LOOK_UP)
#undef BILOGP_CUDA_LOOK_UP
  if (driver->driver_get_version != nullptr) driver->driver_get_version(&driver->version);
  if (!missing.empty() || driver->version < oldest_driver)
    unusable(fmt::format("{} is a driver for CUDA {}{}; expected one for CUDA 12.0 or newer: update the NVIDIA driver",
                         library.path, version_text(driver->version),
                         missing.empty() ? "" : " without the function " + missing));
  const Result result = driver->init(0);
  if (result == Result::no_device) unusable("the driver finds no device; check nvidia-smi and CUDA_VISIBLE_DEVICES");
  if (result != Result::success)
    unusable(fmt::format("the driver does not start: {}; check nvidia-smi", describe(*driver, result)));
  return driver;
}

} // namespace

const Driver& driver() {
  static std::mutex mutex;
  static std::unique_ptr<Driver>* loaded = nullptr; // never destroyed: calls may come during static destruction
  const std::scoped_lock lock(mutex);
  if (loaded == nullptr) loaded = new std::unique_ptr<Driver>(load());
  return **loaded;
}

const Driver* try_driver(std::string* why) noexcept {
  try {
    return &driver();
  } catch (const std::exception& error) {
    if (why != nullptr) *why = error.what();
    return nullptr;
  }
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string describe(const Driver& driver, Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver.get_error_name(result, &name);
  driver.get_error_string(result, &text);
  if (name == nullptr) return fmt::format("CUDA error {}", static_cast<int>(result));
  return fmt::format("{} ({})", name, text == nullptr ? "no description" : text);
}

bool is_sticky(Result result) noexcept {
  // Faults of the hardware and its links, illegal addresses, time-outs, destroyed contexts, assertions, and what else
  // ends a kernel.
  constexpr int codes[] = {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721};
  return std::ranges::find(codes, static_cast<int>(result)) != std::ranges::end(codes);
}

void check(const Driver& driver, Result result, const char* what) {
  if (result == Result::success) return;
  const std::string error = describe(driver, result);
  if (result == Result::out_of_memory)
    throw Error(ErrorKind::out_of_memory, fmt::format("{} failed with {}; free memory of the device", what, error));
  if (is_sticky(result))
    throw Error(ErrorKind::device,
                fmt::format("{} failed with {}; the device takes no more calls from this process, which must be "
                            "started again to use it (other devices go on)",
                            what, error));
  throw Error(ErrorKind::device, fmt::format("{} failed with {}", what, error));
}

} // namespace bilogp::cuda
