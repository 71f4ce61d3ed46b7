// The sum's tree inside a vector and across the lanes of a warp. Every add joins two siblings; an add of two floats
// does not depend on which one is first, so both lanes of a pair may hold the sum.
#ifndef BILOGP_DEVICE_GPU_TREE_H
#define BILOGP_DEVICE_GPU_TREE_H

#include "device/gpu/warp.h"

namespace canon {

// `count` neighbouring nodes, a power of two; the array is used up.
template<int count> CANON_FN float tree_of(float* v) {
  CANON_UNROLL
  for (int width = count; width > 1; width /= 2) {
    CANON_UNROLL
    for (int i = 0; i < width / 2; ++i) v[i] = v[2 * i] + v[2 * i + 1];
  }
  return v[0];
}
template<int count> CANON_FN Node pair_tree_of(Node* v) {
  CANON_UNROLL
  for (int width = count; width > 1; width /= 2) {
    CANON_UNROLL
    for (int i = 0; i < width / 2; ++i) v[i] = pair_sum(v[2 * i], v[2 * i + 1]);
  }
  return v[0];
}

// One node per lane, in the order of the lanes.
CANON_FN float warp_tree(float v) {
  CANON_ROLLED
  for (int mask = 1; mask < warp_lanes; mask *= 2) v = v + shuffle_xor(v, mask);
  return v;
}
CANON_FN Node warp_pair_tree(Node v) {
  CANON_ROLLED
  for (int mask = 1; mask < warp_lanes; mask *= 2) v = pair_sum(v, shuffle_xor(v, mask));
  return v;
}
// Of normalised nodes in the first `width` lanes (a power of two); the result is in all of these.
CANON_FN Node warp_joined(Node v, int width) {
  CANON_ROLLED
  for (int mask = 1; mask < width; mask *= 2) v = joined(v, shuffle_xor(v, mask));
  return v;
}

// Node j * 32 + lane is v[j] of that lane, j < 4. In the first two steps the lanes of a pair share the work: each keeps
// half of the array and gives away the other half.
CANON_FN float warp_tree_of_4(float* v) {
  const int lane = lane_of_warp();
  CANON_UNROLL
  for (int half = 2, mask = 1; half >= 1; half /= 2, mask *= 2) {
    const bool upper = (lane & mask) != 0;
    CANON_UNROLL
    for (int i = 0; i < half; ++i) {
      const float given = upper ? v[i] : v[i + half], kept = upper ? v[i + half] : v[i];
      v[i] = kept + shuffle_xor(given, mask);
    }
  }
  // The lane's lowest two bits now say which j it holds: bit 0 is the high bit of j.
  float sum = v[0];
  sum = sum + shuffle_xor(sum, 4);
  sum = sum + shuffle_xor(sum, 8);
  sum = sum + shuffle_xor(sum, 16);
  sum = sum + shuffle_xor(sum, 2);
  return sum + shuffle_xor(sum, 1);
}

} // namespace canon

#endif
