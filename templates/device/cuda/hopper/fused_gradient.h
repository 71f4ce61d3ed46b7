// logp_with_gradient by clusters, phase B: the gradient of a tile that is still in shared memory, sixteen bytes per
// lane at a time, neighbours side by side.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_FUSED_GRADIENT_H
#define BILOGP_DEVICE_CUDA_HOPPER_FUSED_GRADIENT_H

#include "canon/gradient.h"
#include "device/cuda/hopper/fused_ring.h"

namespace canon {

constexpr int vector_columns = TileShape<Logits>::vector_columns;

// Gradients of a word of plain leaves; `place` decides who makes the leaves, as in the sums.
CANON_FN u32 plain_gradient_word(u32 word, int place, u32 table, const PlainWindow& window, float scaled) {
  float low, high = 0.0f;
  if (LeafTable<Logits>::exists && (place & 1)) {
    if constexpr (LeafTable<Logits>::exists) table_leaves(word, window.small, table, low, high);
  } else {
    low = leaf_scaled(Words<Logits>::column(word, 0), window.c, plain_magic);
    if constexpr (Words<Logits>::columns == 2)
      high = leaf_scaled(Words<Logits>::column(word, 1), window.c, plain_magic);
  }
  return Words<Logits>::packed(low * scaled, high * scaled);
}

// One column of any row.
CANON_FN float gradient_of(float x, const RowInfo& info, const Scale& scale) {
  if (info.way == (i32)GradientWay::nans) return quiet_nan();
  if (info.way == (i32)GradientWay::zeros) return 0.0f;
  if (info.way != (i32)GradientWay::far) return gradient_near<float>(x, scale.c, info.low, info.E, info.factor);
  float p;
  i32 n;
  leaf_pair<float>(x, scale, p, n);
  return gradient_from_pair<float>(p, n, info.E, info.factor);
}

// A tile whose row is not plain, or that ends before its last column. `live` columns from the tile's first one count,
// and `stored` are there.
CANON_COLD void general_gradient_tile(u32 tile, Stored* out, int live, int stored, u32 lane, const RowInfo info,
                                      const Scale scale) {
#pragma unroll 1
  for (int j = 0; j < span_vectors; ++j) {
    const int first = (j * 32 + (int)lane) * vector_columns;
    if (first >= stored) return;
    const Vector v = load_shared_vector(tile + (u32)(j * 32 + (int)lane) * 16);
#pragma unroll 1
    for (int i = 0; i < vector_columns && first + i < stored; ++i) {
      const u32 word = v.word[0] * (i / Words<Logits>::columns == 0) + v.word[1] * (i / Words<Logits>::columns == 1) +
                       v.word[2] * (i / Words<Logits>::columns == 2) + v.word[3] * (i / Words<Logits>::columns == 3);
      const float x = Words<Logits>::column(word, i % Words<Logits>::columns);
      const bool counts = first + i < live || info.way == (i32)GradientWay::nans;
      store(out + first + i, Logits::narrow(counts ? gradient_of(x, info, scale) : 0.0f));
    }
  }
}

struct GradientPhase {
  const LogpGradientArguments& a;
  const FusedLayout& ring;
  const FusedShare& share;
  const u32 lane;
  const int vocab;
  const PlainWindow& window;
  const Scale scale;

  CANON_MEMBER RowInfo read_info(u32 buffer) const {
    const u32 at = ring.infos + buffer * row_info_bytes;
    const Vector v = load_shared_vector(at), w = load_shared_vector(at + 16);
    RowInfo info;
    info.scaled = float_from_bits(v.word[0]);
    info.factor = float_from_bits(v.word[1]);
    info.low = float_from_bits(v.word[2]);
    info.g = float_from_bits(v.word[3]);
    info.m = float_from_bits(w.word[0]);
    info.E = (i32)w.word[1];
    info.way = (i32)w.word[2];
    info.target = (i32)w.word[3];
    return info;
  }

  CANON_MEMBER void plain_tile(u32 tile, Stored* out, int live, float scaled) const {
    const int vectors = live / vector_columns - (int)lane;
#pragma unroll
    for (int j = 0; j < span_vectors; ++j) {
      const Vector v = load_shared_vector(tile + (u32)(j * 32) * 16 + lane * 16);
      Vector y;
#pragma unroll
      for (int i = 0; i < vector_words; ++i) y.word[i] = plain_gradient_word(v.word[i], i, ring.base, window, scaled);
      if (j * 32 < vectors) store_vector(out + (j * 32 + (int)lane) * vector_columns, y);
    }
  }

  // The tile at `at`; its place is free afterwards.
  CANON_MEMBER void run(const FusedPosition& at) const {
    const u32 buffer = at.buffer();
    barrier_wait(ring.info_here + buffer * 8, at.row_parity());
    const RowInfo info = read_info(buffer);
    const u32 tile = ring.stage(at.stage) + (u32)(at.i % fused_stage_tiles) * tile_bytes;
    const int begin = (share.tile_begin + at.i) * TileShape<Logits>::columns;
    Stored* out = (Stored*)a.grad_logits + row_offset(share.row(at.k), a.options, a.grad_strides) + begin;
    const int live = vocab - begin, stored = (int)a.columns - begin;
    const bool whole = live >= TileShape<Logits>::columns || (live % vector_columns == 0 && live == stored);
    if (info.way == (i32)GradientWay::plain && whole)
      plain_tile(tile, out, live, info.scaled);
    else
      general_gradient_tile(tile, out, live, stored < TileShape<Logits>::columns ? stored : TileShape<Logits>::columns,
                            lane, info, scale);
    // By the lane that wrote the target's vector, so that the order of the two stores is its own.
    const int target = info.target - begin;
    if (target >= 0 && target < TileShape<Logits>::columns && ((target / vector_columns) & 31) == (int)lane) {
      const u32 word = load_shared(tile + (u32)target / Words<Logits>::columns * 4);
      const float x = Words<Logits>::column(word, target % Words<Logits>::columns);
      store(out + target, Logits::narrow(gradient_at_target(info.g, x, Node{info.m, info.E}, scale)));
    }
    warp_barrier();
    // The last tile of a row frees what its stage does not use.
    const bool last = at.i == share.count() - 1;
    if (lane == 0)
      barrier_arrive_many(ring.empty + at.stage * 8, last ? (u32)(fused_stage_tiles - at.i % fused_stage_tiles) : 1);
  }
};

} // namespace canon

#endif
