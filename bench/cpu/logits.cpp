#include "bench/cpu/logits.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace bilogp::bench {

void fill(char* memory, std::size_t bytes, DType dtype, bool is_masked) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal(0.0F, 5.0F);
  const std::size_t size = static_cast<std::size_t>(size_of(dtype));
  std::vector<char> block(std::size_t{1} << 22);
  for (std::size_t at = 0; at < block.size(); at += size) {
    const float drawn = normal(random);
    const float value = is_masked && random() % 4 == 0 ? -std::numeric_limits<float>::infinity() : drawn;
    auto bits = std::bit_cast<std::uint32_t>(value);
    if (dtype == DType::bfloat16) bits >>= 16;
    if (dtype == DType::float16) { // a rough conversion will do: the values only have to look like logits
      const std::uint32_t exponent = (bits >> 23) & 0xff;
      const std::uint32_t sign = (bits >> 16) & 0x8000U;
      const std::uint32_t half = ((exponent - 112) << 10) | ((bits >> 13) & 0x3ffU);
      bits = exponent < 113 ? 0 : sign | (exponent == 255 ? 0x7c00U : half);
    }
    std::memcpy(block.data() + at, &bits, size);
  }
  for (std::size_t at = 0; at < bytes; at += block.size())
    std::memcpy(memory + at, block.data(), std::min(block.size(), bytes - at));
}

} // namespace bilogp::bench
