// A tile of a row in the registers of a warp: vector j of a lane is number j * 32 + lane.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_VECTOR_TILE_H
#define BILOGP_DEVICE_CUDA_HOPPER_VECTOR_TILE_H

#include "device/cuda/hopper/block_leaves.h"
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
CANON_FN Node general_vector(const Vector& v, int live, const Scale& scale) {
  PairLadder ladder;
  bool poisoned = false;
#pragma unroll 1
  for (int i = 0; i < vector_words; ++i) {
    const u32 word = i == 0 ? v.word[0] : i == 1 ? v.word[1] : i == 2 ? v.word[2] : v.word[3];
    Node sum = zero_node();
#pragma unroll
    for (int k = 0; k < Words<Logits>::columns; ++k) {
      Node leaf = zero_node();
      if (i * Words<Logits>::columns + k < live) {
        const float x = Words<Logits>::column(word, k);
        poisoned = poisoned || x != x || x == -negative_infinity;
        leaf_pair<float>(x, scale, leaf.m, leaf.E);
      }
      sum = k == 0 ? leaf : pair_sum(sum, leaf);
    }
    ladder.push(sum, i, pair_sum);
  }
  return poisoned ? poison_node() : ladder.third;
}

// A tile by the definition, read once more: kept for this, its vectors would cost registers. `from` is this lane's
// first vector, `rest` the columns from there to the end of the row.
template<int Vectors> CANON_COLD Node general_vector_tile(const Stored* from, int rest, float c) {
  constexpr int width = TileShape<Logits>::vector_columns, step = 32 * width;
  const Scale scale = {c, 0.0f, clamp_bound(c), false, true};
  PairLadder ladder;
#pragma unroll 1
  for (int j = 0; j < Vectors; ++j, from += step, rest -= step) {
    const Vector v = load_streamed_vector_if(rest > 0, from);
    ladder.push(pair_across_warp(general_vector(v, rest < width ? rest : width, scale)), j,
                [](Node a, Node b) { return pair_sum(a, b); });
  }
  return normalised(Vectors == 1 ? ladder.first : Vectors == 2 ? ladder.second : ladder.third);
}

template<int Vectors> struct VectorTile {
  static constexpr int vector_columns = TileShape<Logits>::vector_columns, step = 32 * vector_columns;
  static constexpr int columns = Vectors * step;
  Vector v[Vectors];

  // Column of the row that this lane begins at.
  CANON_MEMBER static int column(int tile, int lane) { return tile * columns + lane * vector_columns; }

  // `from`: of this lane's first vector, with `rest` columns from there to the end of the row.
  CANON_MEMBER void load_from(const Stored* from, int rest) {
#pragma unroll
    for (int j = 0; j < Vectors; ++j) v[j] = load_streamed_vector_if(j * step < rest, from + j * step);
  }

  // The same by way of shared memory, where the lane's first vector comes to `slot` and each other one 512 bytes behind
  // the one before; copies that are awaited by wait_for_vectors. Vectors behind the row are zeros.
  CANON_MEMBER static void copy_to(u32 slot, const Stored* from, int rest) {
#pragma unroll
    for (int j = 0; j < Vectors; ++j) copy_vector_if(j * step < rest, slot + (u32)j * 512, from + j * step);
  }
  CANON_MEMBER void load_from_slot(u32 slot) {
#pragma unroll
    for (int j = 0; j < Vectors; ++j) v[j] = load_shared_vector(slot + (u32)j * 512);
  }

  // In every lane; at reference 6 where all of the tile is in the plain window. The tile was loaded from there.
  // `TableWords` words of each vector come from a table of leaves.
  template<int TableWords>
  CANON_MEMBER Node sum(const Stored* from, int rest, int lane, u32 table, const PlainWindow& window) const {
    float s[Vectors];
    u32 magnitude = 0;
#pragma unroll
    for (int j = 0; j < Vectors; ++j) {
      magnitude = vector_magnitude<Logits>(v[j], magnitude);
      if constexpr (TableWords > 0)
        s[j] = plain_vector_sum_by_table<Logits, TableWords>(v[j], table, window);
      else
        s[j] = plain_vector_sum<Logits, false>(v[j], 0, window);
    }
    bool plain = Words<Logits>::largest_pattern(magnitude) <= window.limit;
    if (rest + lane * vector_columns < columns) { // vectors behind the row are zeros here, but not in the sum
#pragma unroll
      for (int j = 0; j < Vectors; ++j) {
        const int live = rest - j * step;
        plain = plain && (live <= 0 || live >= vector_columns);
        s[j] = live <= 0 ? 0.0f : s[j];
      }
    }
    if (__all_sync(all_lanes, plain)) return Node{tree_of_vectors<Vectors>(s, lane), plain_reference};
    return general_vector_tile<Vectors>(from, rest, window.c);
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
