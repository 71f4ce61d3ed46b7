// Bits of stored elements and of outputs, for the parts of Batch.
#pragma once

#include <cstring>

#include "tests/cpu/batch.hpp"

namespace bilogp::test {

inline std::int64_t bytes_of(Storage storage) {
  return size_of(dtype_of(storage));
}

inline std::vector<std::uint32_t> float_bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

// One stored element, for comparing gradients.
inline std::uint32_t stored_bits(const char* at, Storage storage) {
  if (storage == Storage::float32) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, at, 4);
    return bits;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, at, 2);
  return half;
}

// The memory of one forward call.
struct Batch::ForwardCall {
  std::vector<char> logits;
  std::vector<char> ids;
  std::vector<float> logp;
  std::vector<float> lse;
  std::vector<std::int32_t> state;
  LogpArgs args;
};

// "" unless a call that had to leave its logits alone did not.
inline std::string compare_logits(const std::string& what, const std::vector<char>& given,
                                  const std::vector<char>& now) {
  return given == now ? std::string() : what + " wrote into its logits";
}

inline constexpr float untouched = 12345.0F; // what outputs hold before a call

} // namespace bilogp::test
