// Gradients of several vectors of logits of one row, in lockstep where the machine has the registers for it.
#ifndef BILOGP_DEVICE_CPU_GRADIENT_LANES_H
#define BILOGP_DEVICE_CPU_GRADIENT_LANES_H

#include "canon/gradient.h"
#include "device/cpu/leaves.h"
#include "device/cpu/storage.h"

namespace canon {

#if BILOGP_SCALEF
// p * (factor * 2^-E) * 2^n has the bits of (p * 2^(n - E)) * factor where nothing that is not zero is subnormal: the
// least is 2^-125.5 then. Other rows go the general way.
struct NearGradient {
  static constexpr int vectors = lockstep;
  static constexpr Values gives = Values::normal_numbers;
  FloatLanes c, floor, factor;

  CANON_MEMBER bool prepare(Node sum, const Scale& scale, float row_factor) {
    const float magnitude = row_factor < 0.0f ? -row_factor : row_factor;
    if (sum.E < -80 || sum.E > 80) return false;
    if (magnitude != 0.0f && !(magnitude >= 0x1p-26f && magnitude <= 0x1p26f)) return false;
    c = splat<FloatLanes>(scale.c);
    floor = splat<FloatLanes>((float)(sum.E + gradient_floor));
    factor = splat<FloatLanes>(row_factor * power_of_two(-sum.E));
    return true;
  }

  // A logit far below needs no clamp: its n, however it was rounded, is far below the floor.
  template<int Count> CANON_MEMBER void of(FloatLanes* x) const {
    FloatLanes q[Count], n[Count];
    leaf_steps<Count>(x, c, splat<FloatLanes>(round_magic), q, n);
    CANON_UNROLLED
    for (int i = 0; i < Count; ++i) q[i] = q[i] * factor;
    hold<Count>(q);
    CANON_UNROLLED
    for (int i = 0; i < Count; ++i) {
      constexpr int greater_or_equal = 13, current_rounding = 4;
      const u16 counts = __builtin_ia32_cmpps512_mask(n[i], floor, greater_or_equal, (u16)-1, current_rounding);
      x[i] = __builtin_ia32_scalefps512_mask(q[i], n[i], FloatLanes{}, counts, current_rounding);
    }
  }
};
#else
// As gradient_near, with the exponent of the sum taken off in the first step. It is made even for that, so that a tie
// still goes to the even n; the factor takes the rest, which is exact. Logits need not be raised: far below, whatever
// the steps make of them, the first one's result stays below the floor's.
struct NearGradient {
  static constexpr int vectors = lockstep;
  static constexpr Values gives = Values::numbers;
  FloatLanes c, magic, floor, factor;

  CANON_MEMBER bool prepare(Node sum, const Scale& scale, float row_factor) {
    const float magnitude = row_factor < 0.0f ? -row_factor : row_factor;
    float lowest;
    if (!is_near(sum, scale, lowest) || !(magnitude < 0x1p127f)) return false;
    const i32 odd = sum.E & 1, reference = sum.E + odd;
    c = splat<FloatLanes>(scale.c);
    magic = splat<FloatLanes>(round_magic - (float)reference);
    floor = splat<FloatLanes>(round_magic + (float)(gradient_floor - odd));
    factor = splat<FloatLanes>(odd != 0 ? row_factor * 2.0f : row_factor);
    return true;
  }

  template<int Count> CANON_MEMBER void of(FloatLanes* x) const {
    CANON_UNROLLED
    for (int i = 0; i < Count; ++i) {
      FloatLanes rounded;
      const FloatLanes leaf = leaf_scaled(x[i], c, magic, rounded);
      x[i] = select(rounded >= floor, leaf * factor, splat<FloatLanes>(0.0f));
    }
  }
};
#endif

} // namespace canon

#endif
