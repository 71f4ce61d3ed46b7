// What `doctor` says of CUDA.
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bilogp/runtime.hpp"
#include "cache/warmcache/commands.hpp"
#include "runtime/backends/cuda/devices.hpp"
#include "runtime/backends/cuda/driver.hpp"
#include "runtime/backends/cuda/nvrtc.hpp"
#include "runtime/backends/cuda/targets.hpp"
#include "runtime/score/text_table.hpp"

namespace bilogp::warmcache {

namespace {

Json driver_json(std::string& text) {
  std::string why;
  const cuda::Driver* const driver = cuda::try_driver(&why);
  if (driver == nullptr) {
    text += fmt::format("  cuda  cannot launch: {}\n", why);
    return {{"found", false}, {"reason", why}};
  }
  text += fmt::format("  cuda  driver for CUDA {}, {}\n", cuda::version_text(driver->version), driver->path);
  return {{"found", true}, {"path", driver->path}, {"version", cuda::version_text(driver->version)}};
}

Json devices_json(std::string& text) {
  Json devices = Json::array();
  for (int ordinal = 0; ordinal < cuda::device_count(); ++ordinal) {
    Json device = {{"index", ordinal}};
    try {
      const cuda::DeviceFacts facts = cuda::device_facts(ordinal);
      const std::string target = "cuda:" + cuda::target_of_capability(facts.capability).name;
      text += fmt::format("    cuda:{} {}, {}\n", ordinal, facts.name, target);
      device["name"] = facts.name;
      device["target"] = target;
    } catch (const Error& error) {
      text += fmt::format("    cuda:{} cannot be used: {}\n", ordinal, error.what());
      device["reason"] = error.what();
    }
    devices.push_back(device);
  }
  return devices;
}

// Compiles a kernel for this machine's device, or for Hopper where there is none, so that what is said is what happens.
Json compiler_json(bool has_device, std::string& text) {
  const cuda::NvrtcStatus status = cuda::nvrtc_status();
  Json json = {{"found", status.found}, {"path", status.path}, {"compiles", false}};
  try {
    const cuda::Nvrtc& library = cuda::nvrtc();
    const Specialization small{Operator::logp_finish, DType::float32, DType::int64, 0, Numerics::portable, 0};
    const WarmupReport report = Runtime::get(has_device ? "cuda" : "cuda:sm_90a").warmup({&small, 1});
    const double seconds = report.kernels.at(0).seconds;
    text += fmt::format("    NVRTC {} compiled one kernel in {}, {}\n    compiles for sm_{}\n", library.version,
                        score::duration_text(seconds), status.path, fmt::join(library.archs, ", sm_"));
    json["version"] = library.version;
    json["architectures"] = library.archs;
    json["compiles"] = true;
  } catch (const Error& error) {
    text += fmt::format("    {}\n", error.what());
    json["reason"] = error.what();
  }
  return json;
}

} // namespace

Json cuda_json(std::string& text) {
  const Json driver = driver_json(text);
  const Json devices = devices_json(text);
  const Json compiler = compiler_json(!devices.empty(), text);
  const Json reason = driver.contains("reason")     ? driver["reason"]
                      : devices.empty()             ? Json("the driver sees no device; check CUDA_VISIBLE_DEVICES")
                      : compiler.contains("reason") ? compiler["reason"]
                                                    : Json("");
  return {{"name", "cuda"},
          {"available", !devices.empty()},
          {"compiles", compiler["compiles"]},
          {"reason", reason},
          {"driver", driver},
          {"devices", devices},
          {"compiler", compiler}};
}

} // namespace bilogp::warmcache
