// Where the CUDA libraries are: the one named by the environment, one that the process has loaded already, those of
// pip's packages, the system's, a toolkit's, in this order. Nothing of CUDA is ever linked.
#pragma once

#include <string>
#include <vector>

namespace bilogp::cuda {

struct FoundLibrary {
  void* handle = nullptr; // of dlopen; null when there is none
  std::string path;       // as the loader knows it
  std::string reason;     // when there is none: the places looked at and what to install
};

// libcuda.so.1; BILOGP_CUDA_DRIVER names another file.
FoundLibrary find_driver_library();

// libnvrtc, which BILOGP_NVRTC names as a file or a directory. Among several the one of the driver's own major version
// comes first (`driver_version` as 13000, 0 when unknown).
struct NvrtcFile {
  std::string path;       // empty when there is none; a bare file name is left to the loader
  std::string build;      // "13.0 65be0db342ad51a0": what tells this compiler from others, without loading it
  std::string reason;     // when there is none
  bool is_loaded = false; // by somebody in this process
};
NvrtcFile find_nvrtc(int driver_version);

// Loads it, and what it will look for beside itself. Throws Error(compile_failed) with the loader's reason.
void* load_nvrtc(const NvrtcFile& file);

} // namespace bilogp::cuda
