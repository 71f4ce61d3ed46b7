// Gradients of several vectors of logits of one row, in lockstep where the machine has the registers for it.
#ifndef BILOGP_DEVICE_CPU_GRADIENT_LANES_H
#define BILOGP_DEVICE_CPU_GRADIENT_LANES_H

#include "canon/gradient.h"
#include "device/cpu/leaves.h"

namespace canon {

#if BILOGP_SCALEF
// p * (factor * 2^-E) * 2^n has the bits of (p * 2^(n - E)) * factor where nothing that is not zero is subnormal: the
// least is 2^-125.5 then. Other rows go the general way.
struct NearGradient {
  static constexpr int vectors = lockstep;
  static constexpr bool gives_subnormals = false;
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
struct NearGradient {
  static constexpr int vectors = lockstep;
  static constexpr bool gives_subnormals = true;
  FloatLanes c, low, factor;
  i32 E;

  CANON_MEMBER bool prepare(Node sum, const Scale& scale, float row_factor) {
    float lowest;
    if (!is_near(sum, scale, lowest)) return false;
    c = splat<FloatLanes>(scale.c);
    low = splat<FloatLanes>(lowest);
    factor = splat<FloatLanes>(row_factor);
    E = sum.E;
    return true;
  }

  template<int Count> CANON_MEMBER void of(FloatLanes* x) const {
    CANON_UNROLLED
    for (int i = 0; i < Count; ++i) x[i] = gradient_near<FloatLanes>(x[i], c, low, E, factor);
  }
};
#endif

} // namespace canon

#endif
