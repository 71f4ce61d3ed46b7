// A tile of a row in the registers of a warp: vector j of a lane is number j * 32 + lane.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_VECTOR_TILE_H
#define BILOGP_DEVICE_CUDA_HOPPER_VECTOR_TILE_H

#include "device/cuda/hopper/span.h"
#include "device/cuda/hopper/tile_pairs.h"
#include "rows/specialization.h"

namespace canon {

// Tree over one float per (vector, lane), lanes first: after each of the first steps a lane keeps half of the vectors,
// so that no step works on all of them twice. The sum ends up in every lane.
template<int Vectors> CANON_FN float tree_of_vectors(float* s, int lane) {
  constexpr int halvings = Vectors == 8 ? 3 : Vectors == 4 ? 2 : Vectors == 2 ? 1 : 0;
#pragma unroll
  for (int b = 0; b < halvings; ++b) {
    const int half = Vectors >> (b + 1);
    const bool upper = (lane >> b) & 1;
#pragma unroll
    for (int i = 0; i < Vectors / 2; ++i) {
      if (i >= half) continue;
      const float send = upper ? s[i] : s[i + half], keep = upper ? s[i + half] : s[i];
      s[i] = keep + __shfl_xor_sync(all_lanes, send, 1 << b);
    }
  }
#pragma unroll
  for (int b = halvings; b < 5; ++b) s[0] = s[0] + __shfl_xor_sync(all_lanes, s[0], 1 << b);
#pragma unroll
  for (int b = halvings - 1; b >= 0; --b) s[0] = s[0] + __shfl_xor_sync(all_lanes, s[0], 1 << b);
  return s[0];
}

// Sum of a vector's columns by the definition; the first `live` of them count.
CANON_COLD Node general_vector(const Vector v, int live, float c) {
  const Scale scale = {c, 0.0f, clamp_bound(c), false, true};
  Node words[vector_words];
  bool poisoned = false;
#pragma unroll
  for (int i = 0; i < vector_words; ++i) {
    Node sum = zero_node();
#pragma unroll
    for (int k = 0; k < Words<Logits>::columns; ++k) {
      Node leaf = zero_node();
      if (i * Words<Logits>::columns + k < live) {
        const float x = Words<Logits>::column(v.word[i], k);
        poisoned = poisoned || x != x || x == -negative_infinity;
        leaf_pair<float>(x, scale, leaf.m, leaf.E);
      }
      sum = k == 0 ? leaf : pair_sum(sum, leaf);
    }
    words[i] = sum;
  }
  return poisoned ? poison_node() : pair_sum(pair_sum(words[0], words[1]), pair_sum(words[2], words[3]));
}

template<int Vectors> struct VectorTile {
  static constexpr int vector_columns = TileShape<Logits>::vector_columns, columns = Vectors * 32 * vector_columns;
  Vector v[Vectors];

  // Column of the row that vector j begins at.
  CANON_MEMBER static int column(int tile, int j, int lane) {
    return tile * columns + (j * 32 + lane) * vector_columns;
  }
  CANON_MEMBER static int live_columns(int tile, int j, int lane, int vocab) {
    const int rest = vocab - column(tile, j, lane);
    return rest <= 0 ? 0 : rest < vector_columns ? rest : vector_columns;
  }

  CANON_MEMBER void load_from(const Stored* row, int tile, int vocab, int lane) {
    const Stored* from = row + column(tile, 0, lane);
    const bool whole = (tile + 1) * columns <= vocab;
#pragma unroll
    for (int j = 0; j < Vectors; ++j) {
      if (whole || column(tile, j, lane) < vocab)
        v[j] = load_streamed_vector(from + j * 32 * vector_columns);
      else
        v[j] = Vector{};
    }
  }

  // In every lane; at reference 6 where all of the tile is in the plain window.
  CANON_MEMBER Node sum(int tile, int vocab, int lane, const PlainWindow& window) const {
    float s[Vectors];
    u32 magnitude = 0;
#pragma unroll
    for (int j = 0; j < Vectors; ++j) {
      magnitude = vector_magnitude<Logits>(v[j], magnitude);
      s[j] = plain_vector_sum<Logits, false>(v[j], 0, window);
    }
    bool plain = Words<Logits>::largest_pattern(magnitude) <= window.limit;
    if ((tile + 1) * columns > vocab) { // vectors behind the row are zeros in memory, but not in the sum
#pragma unroll
      for (int j = 0; j < Vectors; ++j) {
        const int live = live_columns(tile, j, lane, vocab);
        plain = plain && (live == 0 || live == vector_columns);
        s[j] = live == 0 ? 0.0f : s[j];
      }
    }
    if (__all_sync(all_lanes, plain)) return Node{tree_of_vectors<Vectors>(s, lane), plain_reference};
    return general_sum(tile, vocab, lane, window.c);
  }

  CANON_MEMBER Node general_sum(int tile, int vocab, int lane, float c) const {
    Node sums[Vectors];
#pragma unroll
    for (int j = 0; j < Vectors; ++j)
      sums[j] = pair_across_warp(general_vector(v[j], live_columns(tile, j, lane, vocab), c));
#pragma unroll
    for (int step = 1; step < Vectors; step *= 2)
#pragma unroll
      for (int j = 0; j < Vectors; j += 2 * step) sums[j] = pair_sum(sums[j], sums[j + step]);
    return normalised(sums[0]);
  }
};

// Nodes `lane * Count + j` of a row, any pairs, to its root.
template<int Count> CANON_COLD Node pair_root_of_lanes(const float2* nodes, int tiles, int lane) {
  Node t[Count];
#pragma unroll
  for (int j = 0; j < Count; ++j) {
    const int i = lane * Count + j;
    t[j] = i < tiles ? normalised(Node{nodes[i].x, __float_as_int(nodes[i].y)}) : zero_node();
  }
#pragma unroll
  for (int step = 1; step < Count; step *= 2)
#pragma unroll
    for (int j = 0; j < Count; j += 2 * step) t[j] = pair_sum(t[j], t[j + step]);
  return normalised(pair_across_warp(normalised(t[0])));
}

} // namespace canon

#endif
