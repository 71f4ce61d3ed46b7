// log2 of the contract: binary64, separate operations, no library.
#ifndef BILOGP_CANON_LOG2_H
#define BILOGP_CANON_LOG2_H

#include "canon/numbers.h"

namespace canon {

// log2(z) for z in [0.35, 2).
CANON_SHARED double log2_canon(double z) {
  constexpr double sqrt_2 = 0x1.6a09e667f3bcdp+0, sqrt_half = 0x1.6a09e667f3bcdp-1;
  double e = 0.0;
  if (z > sqrt_2) {
    z = z * 0.5;
    e = 1.0;
  } else if (z < sqrt_half) {
    z = z * 2.0;
    e = -1.0;
  }
  const double u = (z - 1.0) / (z + 1.0);
  const double w = u * u;
  double q = 1.0 / 21;
  q = q * w + 1.0 / 19;
  q = q * w + 1.0 / 17;
  q = q * w + 1.0 / 15;
  q = q * w + 1.0 / 13;
  q = q * w + 1.0 / 11;
  q = q * w + 1.0 / 9;
  q = q * w + 1.0 / 7;
  q = q * w + 1.0 / 5;
  q = q * w + 1.0 / 3;
  q = q * w + 1.0;
  double h = 0x1.71547652b82fep+1 * u;
  h = h * q;
  return e + h;
}

} // namespace canon

#endif
