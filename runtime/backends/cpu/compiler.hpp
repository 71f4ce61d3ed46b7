// Compiles kernel templates to images with clang and LLVM, in process.
//
// clang and LLVM live in a component of their own (component/, a shared object with a C interface) that is loaded with
// dlopen when the first kernel must be compiled, and never by a process that finds its kernels in the store.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/backends/cpu/targets.hpp"

namespace bilogp::cpu {

struct SourceFile {
  std::string_view name; // as in #include "canon/leaf.h" and in compile errors
  std::string_view text;
};

struct CompileRequest {
  std::vector<SourceFile> files;    // the main file first; only these can be included
  std::vector<std::string> defines; // "BILOGP_LOGITS_BFLOAT16=1"
  std::vector<std::string> entries; // extern "C" names that the image must export
  Target target;
};

struct CompileTimes { // seconds
  double load = 0;    // of the component, 0 when it was there
  double set_up = 0, front_end = 0, optimizer = 0, code_generation = 0, link = 0;
  double total = 0;
};

struct CompiledImage {
  std::string image; // see image.hpp
  CompileTimes times;
};

// Throws Error(compile_failed): the component is missing (the sentence names the package to install and the places
// looked at), the source does not compile (template's name and line, and clang's message), or the result is not a
// self-contained position-independent image. Thread-safe; compiles of several threads run side by side.
CompiledImage compile(const CompileRequest& request);

// "clang 19.1.7": of the compiler that this build was configured with, known without loading it; part of every key.
std::string_view compiler_version() noexcept;

// A hash of the component's sources, its pass pipeline among them; part of every key.
std::string_view component_revision() noexcept;

// Where the component is, or why not; loads nothing. For `doctor`.
struct ComponentStatus {
  bool found = false;
  std::string path;   // of the component when found
  std::string reason; // when not found: the places looked at and what to install
};
ComponentStatus component_status();

// The options given to clang beyond target, defines and file names, in order; part of every key.
const std::vector<std::string>& compile_options();

} // namespace bilogp::cpu
