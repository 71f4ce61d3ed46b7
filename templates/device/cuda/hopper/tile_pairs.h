// Tiles of any finite logits, as pairs (s, R): the contract's W2. First in binary32, for logits that are not huge; then
// by the definition, binary64 for each column.
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

// A column whose |x * c| stays below 2^20.5: R is the bits of the rounded sum, an offset that cancels in every
// difference.
constexpr float near_exponent = 0x1p19f;
constexpr float near_zero_exponent = -0x1.4p20f; // stands for -inf: absorbed by every other leaf

CANON_FN Node near_pair(float x, float c) {
  const float rounded = fused(x, c, round_magic);
  const float f = fused(x, c, -(rounded - round_magic));
  return Node{leaf_value(f), (i32)bits_from_float(rounded)};
}

CANON_FN float near_scale(i32 difference) {
  const i32 shift = difference > absorbed ? difference : absorbed;
  return float_from_bits((u32)(shift << 23) + 0x3f800000u);
}
// One of the two scales is 1, and the other product is exact: a fused multiply-add rounds as the contract's sum does.
CANON_FN Node near_sum(Node a, Node b) {
  const i32 top = a.E > b.E ? a.E : b.E;
  return Node{fused(a.m, near_scale(a.E - top), b.m * near_scale(b.E - top)), top};
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

// `span` is a span_address. Every finite logit is within near_exponent.
template<class S> CANON_FN Node near_tile(u32 span, float c) {
  const float floor = near_zero_exponent / c;
  PairLadder ladder;
#pragma unroll 2
  for (int j = 0; j < span_vectors; ++j) {
    const Vector v = load_shared_vector(span ^ (u32)(j << 4));
    Node words[vector_words];
#pragma unroll
    for (int i = 0; i < vector_words; ++i) {
      const u32 word = v.word[i];
      words[i] = near_pair(fmaxf(Words<S>::column(word, 0), floor), c);
      if constexpr (Words<S>::columns == 2)
        words[i] = near_sum(words[i], near_pair(fmaxf(Words<S>::column(word, 1), floor), c));
    }
    ladder.push(near_sum(near_sum(words[0], words[1]), near_sum(words[2], words[3])), j, near_sum);
  }
  Node sum = ladder.third;
  sum.E -= round_magic_bits;
  if (sum.E < -0xc0000) sum = zero_node();
  return pair_across_warp(sum);
}

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
