// What a kernel is specialized on. Everything else (rows, strides, shard bounds, ignore_index, temperature, threads) is
// a run-time argument and cannot cause a compile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bilogp/export.hpp"
#include "bilogp/tensor.hpp"

namespace bilogp::inline v1 {

enum class Operator : std::uint8_t {
  logp_forward = 0,
  logp_backward = 1,
  logp_partial = 2,
  logp_finish = 3,
  logp_with_gradient = 4, // a kernel of its own on a GPU; on a CPU the first two, row by row
};

// portable: the contract, the same bits everywhere. native: the device's own exponential (on a GPU only).
enum class Numerics : std::uint8_t { portable = 0, native = 1 };

BILOGP_API std::string_view to_string(Operator op) noexcept; // "logp_forward", ...
BILOGP_API std::string_view to_string(Numerics numerics) noexcept;

struct Specialization {
  Operator op = Operator::logp_forward;
  DType logits_dtype = DType::float32; // float32, float16, bfloat16
  DType id_dtype = DType::int64;       // int32, int64
  std::int64_t vocab_size = 0;         // a compile-time constant; 0 makes it a run-time value
  Numerics numerics = Numerics::portable;
  std::uint8_t variant = 0; // a back end's own choice of plan; never changes a bit
  friend bool operator==(const Specialization&, const Specialization&) = default;
};

// "logp_forward bfloat16 int64 vocab=49152 portable", for people.
BILOGP_API std::string describe(const Specialization& spec);

} // namespace bilogp::inline v1
