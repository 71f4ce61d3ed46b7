// Temperature and leaf.
#include <cfloat>
#include <cmath>

#include "tests/reference/canon_arithmetic.hpp"

static_assert(FLT_EVAL_METHOD == 0, "binary32 and binary64 operations must round to their own type");

namespace bilogp::reference::detail {

Scale make_scale(float temperature) {
  Scale scale;
  scale.unit = temperature == 1.0F;
  scale.valid = temperature >= 0x1p-20F && temperature <= 0x1p20F; // false for a NaN
  if (!scale.valid) return scale;
  const double wide = temperature;
  scale.c = scale.unit ? 0x1.715476p+0F : static_cast<float>(0x1.71547652b82fep+0 / wide);
  scale.inverse_temperature = static_cast<float>(1.0 / wide);
  double bound = 0x1p29;
  while (bound * static_cast<double>(scale.c) >= 0x1p30) bound *= 0.5;
  scale.bound = static_cast<float>(bound);
  return scale;
}

float leaf_polynomial(float f) {
  float p = std::fma(0x1.5bfd58p-10F, f, 0x1.3ceaf8p-7F);
  p = std::fma(p, f, 0x1.c6b69ap-5F);
  p = std::fma(p, f, 0x1.ebf9bap-3F);
  p = std::fma(p, f, 0x1.62e42ap-1F);
  return std::fma(p, f, 1.0F);
}

Leaf make_leaf(std::uint32_t logit, const Scale& scale) {
  Leaf leaf;
  if (logit == minus_infinity) return leaf;
  const float x = as_float(logit);
  if (std::isnan(x) || std::isinf(x)) {
    leaf.kind = LeafKind::poison;
    return leaf;
  }
  leaf.kind = LeafKind::value;
  const float clamped = std::fmin(std::fmax(x, -scale.bound), scale.bound);
  // Two 24-bit significands: the product is exact in binary64, and so is what n leaves of it.
  const double u = static_cast<double>(clamped) * static_cast<double>(scale.c);
  const double n = std::nearbyint(u);
  leaf.f = static_cast<float>(u - n);
  leaf.n = static_cast<std::int32_t>(n);
  leaf.p = leaf_polynomial(leaf.f);
  return leaf;
}

} // namespace bilogp::reference::detail
