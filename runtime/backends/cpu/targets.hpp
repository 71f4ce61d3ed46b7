// Instruction-set levels that CPU kernels are compiled for, and what this machine has of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bilogp::cpu {

struct Target {
  std::string name;                  // exact: "x86-64-v3", "x86-64-v4+avx512fp16", "aarch64"; part of the key
  std::string triple;                // "x86_64-unknown-linux-gnu"
  std::string cpu;                   // clang's -target-cpu
  std::vector<std::string> features; // clang's -target-feature, "+avx512fp16"
};

// The fixed levels, in a fixed order: x86-64-v2, x86-64-v3, x86-64-v4, aarch64.
const std::vector<std::string>& known_levels();

// Resolves "" or "native" (this machine's own: the highest level it has, plus the features beyond it that matter) and
// the known levels. Needs no LLVM. Throws Error(invalid_argument) naming the known ones otherwise.
Target resolve_target(std::string_view name);

// Whether this machine can run code for it; `missing` (optional) receives the features it lacks, for people.
bool runs_here(const Target& target, std::string* missing = nullptr);

// "avx512f avx512bw ...": what this machine has, for error sentences and `doctor`.
std::string host_features();

} // namespace bilogp::cpu
