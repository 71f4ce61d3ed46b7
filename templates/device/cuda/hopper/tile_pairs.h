// Tiles of any finite logits, as pairs (s, R): the contract's W2, by the definition, binary64 for each column.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_TILE_PAIRS_H
#define BILOGP_DEVICE_CUDA_HOPPER_TILE_PAIRS_H

#include "canon/node.h"
#include "device/cuda/hopper/span.h"

namespace canon {

CANON_FN Node pair_from_lane(Node a, int distance) {
  Node b;
  b.m = __shfl_xor_sync(all_lanes, a.m, distance);
  b.E = __shfl_xor_sync(all_lanes, a.E, distance);
  return b;
}

// Sum of 32 nodes, one in each lane, which may be any pairs.
CANON_FN Node pair_across_warp(Node a) {
#pragma unroll 1
  for (int distance = 1; distance < 32; distance *= 2) a = pair_sum(a, pair_from_lane(a, distance));
  return a;
}

// Pushes one leaf or vector after another and joins as the bits of the counter say; `size` of them make a span.
struct PairLadder {
  Node first = {}, second = {}, third = {};
  template<class Sum> CANON_MEMBER void push(Node p, int j, Sum sum) {
    if ((j & 1) == 0) {
      first = p;
      return;
    }
    p = sum(first, p);
    if ((j & 2) == 0) {
      second = p;
      return;
    }
    p = sum(second, p);
    third = (j & 4) == 0 ? p : sum(third, p);
  }
};

// B of a scale, from its c alone.
CANON_FN float clamp_bound(float c) {
  float bound = 0x1p29f;
  while ((double)bound * (double)c >= 0x1p30) bound = bound * 0.5f;
  return bound;
}

// Any logits but NaN and +inf; the lane's span begins at `begin`.
template<class S> CANON_COLD Node general_tile(u32 begin, const Scale scale) {
  PairLadder ladder;
#pragma unroll 1
  for (int j = 0; j < span_vectors; ++j) {
    const Vector v = load_shared_vector(begin + (u32)(j << 4));
    Node words[vector_words];
#pragma unroll
    for (int i = 0; i < vector_words; ++i) {
      Node sum = zero_node();
#pragma unroll
      for (int k = 0; k < Words<S>::columns; ++k) {
        Node leaf;
        leaf_pair<float>(Words<S>::column(v.word[i], k), scale, leaf.m, leaf.E);
        sum = k == 0 ? leaf : pair_sum(sum, leaf);
      }
      words[i] = sum;
    }
    ladder.push(pair_sum(pair_sum(words[0], words[1]), pair_sum(words[2], words[3])), j,
                [](Node a, Node b) { return pair_sum(a, b); });
  }
  return pair_across_warp(ladder.third);
}

} // namespace canon

#endif
