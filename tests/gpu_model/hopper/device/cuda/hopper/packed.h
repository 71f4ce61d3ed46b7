// The packed operations on the host model, column by column, as PTX defines them: a maximum is of numbers unless it
// says NaN, zeros are ordered by sign, NaN comes out as the one with all bits set.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_PACKED_H
#define BILOGP_DEVICE_CUDA_HOPPER_PACKED_H

#include "canon/numbers.h"
#include "device/host_model/storage.h"

namespace canon {

CANON_FN u32 truncated_half(float f) {
  const u16 nearest = half_from_float(f);
  const float value = float_from_half(nearest);
  const bool is_beyond = value * value > f * f || (nearest & 0x7fffu) == 0x7c00u;
  return is_beyond && f - f == 0.0f ? nearest - 1u : nearest;
}

// Of one column: `value` widens its pattern, `sign` is its sign bit.
template<class Value> CANON_FN u32 larger_pattern(u32 a, u32 b, u32 sign, Value value) {
  const float x = value(a), y = value(b);
  if (x != x) return y != y ? sign - 1 : b;
  if (y != y) return a;
  if (x == y) return (a & sign) != 0 ? b : a;
  return x > y ? a : b;
}
template<class Value> CANON_FN u32 or_nan(u32 a, u32 b, u32 sign, Value value, u32 number) {
  const float x = value(a), y = value(b);
  return x != x || y != y ? sign - 1 : number;
}

template<class Self> struct ColumnOperations {
  CANON_FN u32 larger_column(u32 a, u32 b) { return larger_pattern(a, b, Self::sign_bit, Self::of); }
  CANON_FN u32 smaller_column(u32 a, u32 b) {
    return larger_pattern(a ^ Self::sign_bit, b ^ Self::sign_bit, Self::sign_bit, Self::of) ^ Self::sign_bit;
  }
  CANON_FN u32 magnitude_column(u32 a, u32 b) {
    const u32 body = Self::sign_bit - 1;
    return larger_column(a & body, b & body) & body | (a ^ b) & Self::sign_bit;
  }
  template<class Operation> CANON_FN u32 each(u32 a, u32 b, Operation operation) {
    if (Self::sign_bit == 0x80000000u) return operation(a, b);
    return operation(a & 0xffffu, b & 0xffffu) & 0xffffu | operation(a >> 16, b >> 16) << 16;
  }
  CANON_FN u32 larger(u32 a, u32 b) { return each(a, b, larger_column); }
  CANON_FN u32 smaller(u32 a, u32 b) { return each(a, b, smaller_column); }
  CANON_FN u32 larger_magnitude(u32 a, u32 b) { return each(a, b, magnitude_column); }
  CANON_FN u32 larger_or_nan(u32 a, u32 b) {
    return each(a, b, [](u32 x, u32 y) { return or_nan(x, y, Self::sign_bit, Self::of, larger_column(x, y)); });
  }
  CANON_FN u32 larger_magnitude_or_nan(u32 a, u32 b) {
    return each(a, b, [](u32 x, u32 y) { return or_nan(x, y, Self::sign_bit, Self::of, magnitude_column(x, y)); });
  }
};

struct PackedBfloat16 : ColumnOperations<PackedBfloat16> {
  static constexpr u32 sign_bit = 0x8000u;
  CANON_FN float of(u32 pattern) { return float_from_bits(pattern << 16); }
  CANON_FN u32 packed(float low, float high) { return bfloat_pair_from_floats(low, high); }
};
struct PackedFloat16 : ColumnOperations<PackedFloat16> {
  static constexpr u32 sign_bit = 0x8000u;
  CANON_FN float of(u32 pattern) { return float_from_half((u16)pattern); }
  CANON_FN u32 packed(float low, float high) { return half_pair_from_floats(low, high); }
};
struct OneFloat : ColumnOperations<OneFloat> {
  static constexpr u32 sign_bit = 0x80000000u;
  CANON_FN float of(u32 pattern) { return float_from_bits(pattern); }
};

CANON_FN u32 add_then_max_of_halves(u32 word, u32 addend, u32 running) {
  const u32 low = word + addend & 0xffffu, high = (word >> 16) + (addend >> 16) & 0xffffu;
  const u32 old_low = running & 0xffffu, old_high = running >> 16;
  return (low > old_low ? low : old_low) | (high > old_high ? high : old_high) << 16;
}

CANON_FN float flushed_sum(float a, float b) {
  const auto flushed = [](float x) { return __builtin_fabsf(x) < 0x1p-126f ? 0.0f : x; };
  return flushed(a) + flushed(b);
}

} // namespace canon

#endif
