// Warps: which lane this thread is, and what the 32 lanes of a warp find out together. Every function with `warp`,
// `shuffle` or `row` in its name that takes part in a collective is called by all lanes of the warp.
#ifndef BILOGP_DEVICE_GPU_WARP_H
#define BILOGP_DEVICE_GPU_WARP_H

#include "canon/node.h"
#if defined(BILOGP_DEVICE_CUDA)
#include "device/cuda/machine.h"
#else
#include "device/host_model/machine.h"
#endif

#ifndef BILOGP_WARPS
#define BILOGP_WARPS 8
#endif

namespace canon {

constexpr int block_warps = BILOGP_WARPS;
constexpr int block_threads = block_warps * warp_lanes;

CANON_FN int lane_of_warp() {
  return thread_of_block() % warp_lanes;
}
CANON_FN int warp_of_block() {
  return thread_of_block() / warp_lanes;
}

CANON_FN bool warp_any(bool condition) {
  return warp_ballot(condition) != 0;
}
CANON_FN bool warp_all(bool condition) {
  return warp_ballot(condition) == all_lanes;
}

CANON_FN float shuffle_xor(float value, int mask) {
  return float_from_bits(shuffle_xor(bits_from_float(value), mask));
}
CANON_FN Node shuffle_xor(Node a, int mask) {
  return Node{shuffle_xor(a.m, mask), (i32)shuffle_xor((u32)a.E, mask)};
}
CANON_FN Node shuffle_from(Node a, int lane) {
  return Node{float_from_bits(shuffle_from(bits_from_float(a.m), lane)), (i32)shuffle_from((u32)a.E, lane)};
}
CANON_FN i64 shuffle_from(i64 value, int lane) {
  const u32 low = shuffle_from((u32)value, lane), high = shuffle_from((u32)((u64)value >> 32), lane);
  return (i64)((u64)high << 32 | low);
}

// Of all lanes; NaNs do not count.
CANON_FN float warp_maximum(float value) {
  CANON_ROLLED
  for (int mask = 1; mask < warp_lanes; mask *= 2) {
    const float other = shuffle_xor(value, mask);
    value = other > value ? other : value;
  }
  return value;
}

// A row's small work is dealt out to the lanes of one warp.
CANON_FN i64 row_lane() {
  return lane_of_warp();
}
CANON_FN i64 row_lanes() {
  return warp_lanes;
}
CANON_FN bool row_any(bool condition) {
  return warp_any(condition);
}

} // namespace canon

#endif
