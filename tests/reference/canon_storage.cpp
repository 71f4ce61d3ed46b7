// Widening and narrowing between the storage types and binary32, on integers alone.
#include <bit>
#include <cstring>

#include "tests/reference/canon_arithmetic.hpp"

namespace bilogp::reference {
namespace {

constexpr std::uint32_t sign_bit = 0x80000000;

std::uint32_t widen_float16(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fU;
  const std::uint32_t fraction = half & 0x3ffU;
  if (exponent == 31) return sign | detail::plus_infinity | (fraction << 13);
  if (exponent != 0) return sign | ((exponent + 112) << 23) | (fraction << 13);
  if (fraction == 0) return sign;
  // A subnormal is fraction * 2^-24; its leading one becomes the implicit bit.
  const auto top = static_cast<std::uint32_t>(std::bit_width(fraction)) - 1;
  return sign | ((top + 103) << 23) | ((fraction << (23 - top)) & 0x7fffffU);
}

// value / 2^shift to nearest, ties to even; shift in [1, 31].
std::uint32_t shift_to_even(std::uint32_t value, std::uint32_t shift) {
  const std::uint32_t kept = value >> shift;
  const std::uint32_t rest = value & ((1U << shift) - 1);
  const std::uint32_t half = 1U << (shift - 1);
  const bool up = rest > half || (rest == half && (kept & 1U) != 0);
  return kept + (up ? 1U : 0U);
}

std::uint32_t narrow_float16(std::uint32_t bits) {
  const std::uint32_t sign = (bits & sign_bit) >> 16;
  const std::uint32_t magnitude = bits & ~sign_bit;
  if (magnitude > detail::plus_infinity) return 0x7e00;
  // 65520 lies halfway between the largest finite value and 2^16, whose significand is even.
  if (magnitude >= 0x477ff000) return sign | 0x7c00U;
  if (magnitude >= 0x38800000) return sign | (shift_to_even(magnitude, 13) - (112U << 10));
  const std::uint32_t exponent = magnitude >> 23;
  if (exponent < 102) return sign; // below 2^-25, half of the smallest subnormal
  const std::uint32_t significand = (magnitude & 0x7fffffU) | 0x800000U;
  return sign | shift_to_even(significand, 126 - exponent);
}

std::uint32_t narrow_bfloat16(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & ~sign_bit;
  if (magnitude > detail::plus_infinity) return 0x7fc0;
  return ((bits & sign_bit) >> 16) | shift_to_even(magnitude, 16);
}

} // namespace

std::uint32_t widen(Storage storage, const void* element) {
  if (storage == Storage::float32) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, element, sizeof(bits));
    return bits;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, element, sizeof(bits));
  if (storage == Storage::float16) return widen_float16(bits);
  return static_cast<std::uint32_t>(bits) << 16;
}

std::uint32_t narrow(Storage storage, std::uint32_t bits) {
  if (storage == Storage::float16) return narrow_float16(bits);
  if (storage == Storage::bfloat16) return narrow_bfloat16(bits);
  return (bits & ~sign_bit) > detail::plus_infinity ? detail::quiet_nan : bits;
}

} // namespace bilogp::reference
