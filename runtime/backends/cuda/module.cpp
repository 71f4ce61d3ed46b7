#include "runtime/backends/cuda/module.hpp"

#include <string>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cuda/compiler.hpp"
#include "runtime/backends/cuda/contexts.hpp"

namespace bilogp::cuda {
namespace {

// CUjit_option
constexpr int error_log_buffer = 5;
constexpr int error_log_bytes = 6;
constexpr std::size_t log_bytes = 2048;

bool refuses_image(Result result) {
  switch (result) {
  case Result::invalid_image:
  case Result::no_binary_for_gpu:
  case Result::invalid_source:
  case Result::unsupported_ptx_version:
    return true;
  default:
    return static_cast<int>(result) == 218 || // PTX does not compile
           static_cast<int>(result) == 223 || // JIT compilation is disabled
           static_cast<int>(result) == 500;   // the entry is not there
  }
}

[[noreturn]] void refused(const Device& device, Result result, const std::string& log) {
  throw Error(ErrorKind::cache, fmt::format("the driver (for CUDA {}) refuses a kernel for {}: {}{}{}",
                                            version_text(device.driver().version), device.target().name,
                                            describe(device.driver(), result), log.empty() ? "" : "; ", log));
}

// Up to all of the shared memory that a block may have: what a launch takes of it is the plan's choice.
void allow_all_shared_memory(const Device& device, Function function) {
  const Driver& driver = device.driver();
  int static_bytes = 0;
  check(driver, driver.function_get_attribute(&static_bytes, FunctionAttribute::static_shared_bytes, function),
        "asking a kernel for its shared memory");
  check(driver,
        driver.function_set_attribute(function, FunctionAttribute::max_dynamic_shared_bytes,
                                      device.limits().shared_per_block - static_bytes),
        "allowing a kernel its shared memory");
  if (device.limits().has_clusters)
    check(driver, driver.function_set_attribute(function, FunctionAttribute::non_portable_cluster_size_allowed, 1),
          "allowing a kernel large clusters");
}

} // namespace

Function load_function(Device& device, std::string_view image, const std::string& entry) {
  const Driver& driver = device.driver();
  const CurrentContext current(driver, device.context());
  const OutsideCaptures outside(driver);
  const std::string bytes(image);   // PTX must end with a zero
  std::string log(log_bytes, '\0'); // the driver ends what it writes with a zero
  int options[] = {error_log_buffer, error_log_bytes};
  void* values[] = {log.data(), reinterpret_cast<void*>(log_bytes - 1)};
  Module module = nullptr;
  const Result loaded = driver.module_load_data(&module, bytes.c_str(), 2, options, values);
  log.resize(log.find('\0'));
  if (refuses_image(loaded)) refused(device, loaded, log);
  check(driver, loaded, "loading a kernel");
  try {
    Function function = nullptr;
    const Result found = driver.module_get_function(&function, module, entry.c_str());
    if (refuses_image(found)) refused(device, found, "it lacks the entry " + entry);
    check(driver, found, "finding a kernel's entry");
    allow_all_shared_memory(device, function);
    return function;
  } catch (...) {
    driver.module_unload(module);
    throw;
  }
}

void check_image(std::string_view image) {
  constexpr std::size_t smallest_elf = 64;
  const bool is_cubin = !is_ptx(image) && image.size() >= smallest_elf;
  if (!is_cubin && image.find(".version") == std::string_view::npos)
    throw Error(ErrorKind::cache, "a stored CUDA kernel is neither a cubin nor PTX");
}

} // namespace bilogp::cuda
