// NVRTC, loaded when the first kernel must be compiled: the few functions that bilogp calls.
//
// Thread-safety: everything here may be called from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bilogp::cuda {

using Program = struct ProgramHandle*; // nvrtcProgram

// Values are NVRTC's; only what is told apart is named.
enum class CompilerResult : int { success = 0, out_of_memory = 1, invalid_option = 5, compilation = 6 };

#define BILOGP_NVRTC_FUNCTIONS(F)                                                                                      \
  F(get_version, "nvrtcVersion", (int* major, int* minor))                                                             \
  F(get_arch_count, "nvrtcGetNumSupportedArchs", (int* count))                                                         \
  F(get_archs, "nvrtcGetSupportedArchs", (int* archs))                                                                 \
  F(create_program, "nvrtcCreateProgram",                                                                              \
    (Program * program, const char* source, const char* name, int count, const char* const* headers,                   \
     const char* const* header_names))                                                                                 \
  F(destroy_program, "nvrtcDestroyProgram", (Program * program))                                                       \
  F(compile_program, "nvrtcCompileProgram", (Program program, int count, const char* const* options))                  \
  F(get_log_size, "nvrtcGetProgramLogSize", (Program program, std::size_t* size))                                      \
  F(get_log, "nvrtcGetProgramLog", (Program program, char* log))                                                       \
  F(get_cubin_size, "nvrtcGetCUBINSize", (Program program, std::size_t* size))                                         \
  F(get_cubin, "nvrtcGetCUBIN", (Program program, char* cubin))                                                        \
  F(get_ptx_size, "nvrtcGetPTXSize", (Program program, std::size_t* size))                                             \
  F(get_ptx, "nvrtcGetPTX", (Program program, char* ptx))

struct Nvrtc {
// The arguments bring their own parentheses.
#define BILOGP_NVRTC_MEMBER(name, symbol, arguments)                                                                   \
  CompilerResult(*name) arguments = nullptr; // NOLINT(bugprone-macro-parentheses)
  BILOGP_NVRTC_FUNCTIONS(BILOGP_NVRTC_MEMBER)
#undef BILOGP_NVRTC_MEMBER
  const char* (*get_error_string)(CompilerResult result) = nullptr;
  std::string version;    // "13.0"
  std::string path;       // of the library
  std::vector<int> archs; // 75, 80, ...: what it compiles for, in rising order
};

// Loads it at the first call and keeps it. Throws Error(compile_failed): the places looked at and what to install, or
// that it is older than 12.0. A failed attempt is made again by the next call.
const Nvrtc& nvrtc();

// "nvrtc 13.0 65be0db342ad51a0": of the copy that `nvrtc()` would load, or has loaded; part of every key, and known
// without loading it. Throws as `nvrtc()` where there is none.
const std::string& nvrtc_identity();

// Where it is, or why not; loads nothing. For `doctor`.
struct NvrtcStatus {
  bool found = false;
  std::string path;
  std::string reason;
};
NvrtcStatus nvrtc_status();

} // namespace bilogp::cuda
