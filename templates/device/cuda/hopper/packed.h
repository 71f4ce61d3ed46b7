// Packed operations in PTX: on both 16-bit columns of a word at once, and their counterparts for one float.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_PACKED_H
#define BILOGP_DEVICE_CUDA_HOPPER_PACKED_H

#include "canon/numbers.h"

namespace canon {

#define BILOGP_PACKED(name, instruction)                                                                               \
  CANON_FN u32 name(u32 a, u32 b) {                                                                                    \
    u32 r;                                                                                                             \
    asm(instruction " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                                                        \
    return r;                                                                                                          \
  }
// PTX names the two packed types alike but for a suffix. The larger magnitude has a sign that means nothing to a check
// and is that of the first word where the second is positive.
#define BILOGP_PACKED_TYPE(suffix)                                                                                     \
  BILOGP_PACKED(larger, "max." suffix)                                                                                 \
  BILOGP_PACKED(smaller, "min." suffix)                                                                                \
  BILOGP_PACKED(larger_or_nan, "max.NaN." suffix)                                                                      \
  BILOGP_PACKED(larger_magnitude, "max.xorsign.abs." suffix)                                                           \
  BILOGP_PACKED(larger_magnitude_or_nan, "max.NaN.xorsign.abs." suffix)                                                \
  CANON_FN u32 packed(float low, float high) {                                                                         \
    u32 r;                                                                                                             \
    asm("cvt.rn." suffix ".f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));                                          \
    return r;                                                                                                          \
  }

struct PackedBfloat16 {
  BILOGP_PACKED_TYPE("bf16x2")
};
struct PackedFloat16 {
  BILOGP_PACKED_TYPE("f16x2")
};

#define BILOGP_ONE_FLOAT(name, instruction)                                                                            \
  CANON_FN u32 name(u32 a, u32 b) {                                                                                    \
    float r;                                                                                                           \
    asm(instruction " %0, %1, %2;" : "=f"(r) : "f"(float_from_bits(a)), "f"(float_from_bits(b)));                      \
    return bits_from_float(r);                                                                                         \
  }
struct OneFloat {
  BILOGP_ONE_FLOAT(larger, "max.f32")
  BILOGP_ONE_FLOAT(smaller, "min.f32")
  BILOGP_ONE_FLOAT(larger_or_nan, "max.NaN.f32")
  BILOGP_ONE_FLOAT(larger_magnitude_or_nan, "max.NaN.xorsign.abs.f32")
};

// The larger of word + addend, which wraps in each column, and what was larger before, as unsigned numbers.
CANON_FN u32 add_then_max_of_halves(u32 word, u32 addend, u32 running) {
  u32 r;
  asm("{\n\t.reg .b32 sum;\n\tadd.u16x2 sum, %1, %2;\n\tmax.u16x2 %0, sum, %3;\n\t}"
      : "=r"(r)
      : "r"(word), "r"(addend), "r"(running));
  return r;
}

// Toward zero.
CANON_FN u32 truncated_half(float f) {
  u16 h;
  asm("cvt.rz.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}

// Subnormal summands are taken for zeros. No other kind of instruction flushes.
CANON_FN float flushed_sum(float a, float b) {
  float sum;
  asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(sum) : "f"(a), "f"(b));
  return sum;
}

} // namespace canon

#endif
