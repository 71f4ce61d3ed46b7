// Compiles kernel templates to machine code with NVRTC, in process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bilogp/error.hpp"
#include "runtime/backends/cuda/targets.hpp"

namespace bilogp::cuda {

struct SourceFile {
  std::string_view name; // as in #include "canon/leaf.h" and in compile errors
  std::string_view text;
};

struct CompileRequest {
  std::vector<SourceFile> files;    // the main file first; only these can be included
  std::vector<std::string> defines; // "BILOGP_LOGITS=Bfloat16"
  std::string entry;                // extern "C" name of the kernel
  Target target;
};

struct CompiledImage {
  std::string image;  // a cubin, or PTX text where NVRTC is older than the target
  std::string ptx;    // what it was made of, for those who check it
  double seconds = 0; // of NVRTC alone
};

// What `compile` throws where NVRTC is too old for kernels of clusters: plans without clusters can do without it.
class ClustersNotCompiled : public Error {
public:
  using Error::Error;
};

// Throws Error(compile_failed): there is no NVRTC (the places looked at, what to install), it cannot compile for the
// target, or the source does not compile (template's name and line, and NVRTC's message). Thread-safe.
CompiledImage compile(const CompileRequest& request);

// Options beyond architecture and defines, in order; part of every key.
const std::vector<std::string>& compile_options();

// Whether it is PTX and not machine code.
bool is_ptx(std::string_view image) noexcept;

} // namespace bilogp::cuda
