// Logarithms close to the contract's, by which a row's results are found without its divisions: what the contract says
// lies within a known distance, and where all of that rounds to one binary32, that is the result. Elsewhere (one in a
// million, and results near 0) the definition is worked out.
#ifndef BILOGP_DEVICE_GPU_CLOSE_LOG2_H
#define BILOGP_DEVICE_GPU_CLOSE_LOG2_H

#include "canon/numbers.h"

namespace canon {

// log2(x) for a binary32 x in [0.5, 2], to 2^-49: as log2_canon, but with a reciprocal for the quotient, the first nine
// terms of the series, and these added up by pairs.
CANON_SHARED double close_log2(float x) {
  constexpr float sqrt_2 = 0x1.6a09e6p+0f, sqrt_half = 0x1.6a09e6p-1f;
  const float e = x > sqrt_2 ? 1.0f : x < sqrt_half ? -1.0f : 0.0f;
  const double z = (double)(e > 0.0f ? x * 0.5f : e < 0.0f ? x * 2.0f : x);
  const double u = (z - 1.0) * (1.0 / (z + 1.0));
  const double w = u * u, w2 = w * w, w4 = w2 * w2;
  const double a0 = fused(w, 1.0 / 3, 1.0), a1 = fused(w, 1.0 / 7, 1.0 / 5);
  const double a2 = fused(w, 1.0 / 11, 1.0 / 9), a3 = fused(w, 1.0 / 15, 1.0 / 13);
  const double b0 = fused(w2, a1, a0), b1 = fused(w2, a3, a2);
  const double q = fused(w4 * w4, 1.0 / 17, fused(w4, b1, b0));
  return fused(0x1.71547652b82fep+1 * u, q, (double)e);
}

// The binary32 that every d within reach of the contract's gives; false where there are two. Its own roundings and
// these logarithms' errors stay below 2^-48 + 2^-51 |d|.
CANON_FN bool one_result(double d, float& result) {
  const double reach = fused(d < 0.0 ? -d : d, 0x1p-48, 0x1p-46);
  const float low = (float)((d - reach) * inverse_log2_e), high = (float)((d + reach) * inverse_log2_e);
  result = low;
  return bits_from_float(low) == bits_from_float(high);
}

// The same in fewer steps behind the sum: a piece of [1, 2) brings along what hangs on the piece alone.
struct LogPiece {
  double inverse, log; // of its middle; the logarithm as results have it: log2 times inverse_log2_e
};
constexpr int log_pieces = 32;
CANON_FN constexpr LogPiece log_piece(int i) {
  const double middle = 1.0 + ((double)i + 0.5) / log_pieces;
  const double u = (middle - 1.0) / (middle + 1.0);
  double q = 0.0;
  for (int k = 41; k > 0; k -= 2) q = q * (u * u) + 1.0 / k;
  return LogPiece{1.0 / middle, 2.0 * u * q * (log2_e_wide * inverse_log2_e)};
}
struct LogPieces {
  LogPiece at[log_pieces];
};
CANON_FN constexpr LogPieces all_log_pieces() {
  LogPieces pieces = {};
  for (int i = 0; i < log_pieces; ++i) pieces.at[i] = log_piece(i);
  return pieces;
}
CANON_FN int log_piece_of(float m) {
  return (int)(bits_from_float(m) >> 18) & (log_pieces - 1);
}

// (exponent + sign * log2(m)) * inverse_log2_e + rest for m in [1, 2), to 2^-49 of the logarithm; `piece` is m's.
CANON_FN double close_result(i32 exponent, double rest, double sign, float m, const LogPiece& piece) {
  constexpr double k = log2_e_wide * inverse_log2_e; // of a natural logarithm
  const double base = fused((double)exponent, inverse_log2_e, rest) + sign * piece.log;
  const double u = fused((double)m, piece.inverse, -1.0); // at most 2^-6
  const double w = u * u, w2 = w * w, v = sign * w;
  const double a0 = fused(u, k / 3, -k / 2), a1 = fused(u, k / 5, -k / 4), a2 = fused(u, k / 7, -k / 6);
  const double q = fused(w2, fused(w, -k / 8, a2), fused(w, a1, a0));
  return fused(v, q, fused(sign * k, u, base));
}

// The binary32 that every number within reach of `close` rounds to, as `one_result`; false where there are two. The
// reach is told by the exponent, which is there before.
CANON_FN bool one_rounding(double close, i32 exponent, float& result) {
  const double reach = fused((double)(exponent < 0 ? -exponent : exponent), 0x1p-48, 0x1p-45);
  const float low = (float)(close - reach), high = (float)(close + reach);
  result = low;
  return bits_from_float(low) == bits_from_float(high);
}

} // namespace canon

#endif
