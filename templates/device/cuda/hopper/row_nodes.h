// The tree above the tiles of a row: node i * 32 + lane is tile number so; a warp holds all of them.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_ROW_NODES_H
#define BILOGP_DEVICE_CUDA_HOPPER_ROW_NODES_H

#include "device/cuda/hopper/tile_pairs.h"
#include "rows/specialization.h"

namespace canon {

constexpr i64 fixed_row_tiles = (BILOGP_VOCAB + TileShape<Logits>::columns - 1) / TileShape<Logits>::columns;
constexpr int most_nodes_per_lane = 8; // rows of at most 256 tiles

constexpr int nodes_per_lane = BILOGP_VOCAB == 0 ? most_nodes_per_lane
                                                 : (fixed_row_tiles <= 32    ? 1
                                                    : fixed_row_tiles <= 64  ? 2
                                                    : fixed_row_tiles <= 128 ? 4
                                                                             : 8);

// s * 2^R each; at reference 6 throughout if all tiles were plain, or masked within the plain window.
struct RowNodes {
  float s[nodes_per_lane];
  i32 R[nodes_per_lane];

  CANON_MEMBER Node root() {
    bool plain = true;
#pragma unroll
    for (int i = 0; i < nodes_per_lane; ++i) plain = plain && R[i] == plain_reference;
    if (__all_sync(all_lanes, plain)) {
      const float sum = plain_root();
      // Sums are at least 2^-125 or zero, so only the upper end of the range could be left on the way.
      if (sum < -negative_infinity) return normalised(Node{sum, plain_reference});
    }
    return pair_root();
  }

  CANON_MEMBER float plain_root() const {
    float t[nodes_per_lane];
#pragma unroll
    for (int i = 0; i < nodes_per_lane; ++i) {
      t[i] = s[i];
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) t[i] = t[i] + __shfl_xor_sync(all_lanes, t[i], distance);
    }
#pragma unroll
    for (int step = 1; step < nodes_per_lane; step *= 2)
#pragma unroll
      for (int i = 0; i + step < nodes_per_lane; i += 2 * step) t[i] = t[i] + t[i + step];
    return t[0];
  }

  CANON_MEMBER Node pair_root() const {
    Node t[nodes_per_lane];
#pragma unroll
    for (int i = 0; i < nodes_per_lane; ++i) t[i] = pair_across_warp(normalised(Node{s[i], R[i]}));
#pragma unroll
    for (int step = 1; step < nodes_per_lane; step *= 2)
#pragma unroll
      for (int i = 0; i + step < nodes_per_lane; i += 2 * step) t[i] = joined(t[i], t[i + step]);
    return normalised(t[0]);
  }
};

} // namespace canon

#endif
