// A small kernel and its answers, for the tests of the CPU back end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/backends/cpu/compiler.hpp"

namespace backend_test {

using SumFunction = void (*)(const float* x, const float* y, const float* z, float* out, long count, int mode);

constexpr std::string_view kernel_name = "sum.kernel", header_name = "canon/lanes.h", second_header = "device/row.h";

// Vectors with a tail, a table of constants, a jump table, and a call between two entries.
inline constexpr std::string_view header_text = R"(
typedef float Lanes __attribute__((vector_size(64), aligned(4)));
static const float weights[6] = {1.0f, -2.5f, 0.125f, 3.0e-39f, 7.0f, 1.0e30f};
)";
inline constexpr std::string_view second_header_text = R"(
#include "canon/lanes.h"
static inline Lanes fused_or_not(Lanes a, Lanes b, Lanes c) { return a * b + c; }
)";
inline constexpr std::string_view kernel_text = R"(
#include "device/row.h"
#define ENTRY extern "C" __attribute__((visibility("default"), noinline))
ENTRY float weight(int mode) {
  switch (mode) {
  case 0: return weights[0];
  case 1: return weights[5] * 2;
  case 2: return weights[2];
  case 3: return weights[3];
  case 4: return weights[4] - 8;
  default: return weights[mode & 1];
  }
}
ENTRY void sum(const float* x, const float* y, const float* z, float* out, long count, int mode) {
  const float w = weight(mode);
  long i = 0;
  for (; i + 16 <= count; i += 16)
    *(Lanes*)(out + i) = fused_or_not(*(const Lanes*)(x + i), *(const Lanes*)(y + i), *(const Lanes*)(z + i)) * w;
  for (; i < count; ++i) out[i] = (x[i] * y[i] + z[i]) * w;
}
)";

bilogp::cpu::CompileRequest small_kernel(std::string_view target);

// One file, one entry.
bilogp::cpu::CompileRequest one_file(std::string_view text, std::string_view entry, std::string_view target = "native");

// Whether `sum` gives the answers of unfused arithmetic for 1 to 67 elements and every mode.
bool answers_are_right(SumFunction sum);

// The sentence of the Error(compile_failed) that compiling throws; empty when it compiles.
std::string compile_error(const bilogp::cpu::CompileRequest& request);

} // namespace backend_test
