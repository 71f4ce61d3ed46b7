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

// Whether the id of a row ahead is waited for where it is asked for, or only where it is needed. Waiting at once is
// good for single blocks and clusters of two alone: it keeps their warps out of step (92 % of a copy, where warps in
// step take 84 to 90).
constexpr bool waits_at_once = fused_blocks <= 2;

// What every tile asks of its row, in registers while a warp is in that row; the rest stays in shared memory.
struct RowBrief {
  float scaled = 0.0f;
  i32 way = 0, target = 0;
};

struct GradientPhase {
  const LogpGradientArguments& a;
  const FusedLayout& ring;
  const FusedShare& share;
  const u32 lane;
  const int vocab;
  const Scale scale;

  CANON_MEMBER RowBrief read_brief(i32 k) const {
    const u32 at = ring.info_of(row_buffer(k));
    const Vector w = load_shared_vector(at + 16);
    return {float_from_bits(load_shared(at)), (i32)w.word[2], (i32)w.word[3]};
  }
  CANON_MEMBER RowInfo read_info(i32 k) const {
    const u32 at = ring.info_of(row_buffer(k));
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

  CANON_MEMBER void plain_tile(u32 tile, Stored* out, int live, float scaled, const PlainWindow& window) const {
    const int vectors = live / vector_columns - (int)lane;
    const u32 from = tile + lane * 16;
    Stored* const to = out + lane * vector_columns;
#pragma unroll
    for (int j = 0; j < span_vectors; ++j) {
      const Vector v = load_shared_vector(from + (u32)j * 32 * 16);
      Vector y;
#pragma unroll
      for (int i = 0; i < vector_words; ++i) y.word[i] = plain_gradient_word(v.word[i], i, ring.table, window, scaled);
      store_whole_vector_if(j * 32 < vectors, to + j * 32 * vector_columns, y);
    }
  }

  CANON_MEMBER void gradient(u32 tile, Stored* row, const FusedTile& at, const RowBrief& brief,
                             const PlainWindow& window) const {
    const int begin = at.tile * TileShape<Logits>::columns;
    Stored* out = row + begin;
    const int live = vocab - begin, stored = (int)a.columns - begin;
    const bool whole = live >= TileShape<Logits>::columns || (live % vector_columns == 0 && live == stored);
    if (brief.way == (i32)GradientWay::plain && whole)
      plain_tile(tile, out, live, brief.scaled, window);
    else
      general_gradient_tile(tile, out, live, stored < TileShape<Logits>::columns ? stored : TileShape<Logits>::columns,
                            lane, read_info(at.k), scale);
    // By the lane that wrote the target's vector, so that the order of the two stores is its own.
    const int target = brief.target - begin;
    if (target >= 0 && target < TileShape<Logits>::columns && ((target / vector_columns) & 31) == (int)lane) {
      const u32 word = load_shared(tile + (u32)target / Words<Logits>::columns * 4);
      const float x = Words<Logits>::column(word, target % Words<Logits>::columns);
      const RowInfo info = read_info(at.k);
      Scale own = scale;
      // Worked on here and not ahead of the loop, where the registers are short.
      asm volatile("" : "+f"(own.c), "+f"(own.inverse_t));
      own.is_one = a.options.temperature == 1.0f;
      store(out + target, Logits::narrow(gradient_at_target(info.g, x, Node{info.m, info.E}, own)));
    }
  }

  // Brings in a tile of the row whose logits are at `row`. By one lane.
  CANON_MEMBER void fill(u32 place, u32 tile, const Stored* row, bool is_ignored, const FusedTile& at) const {
    const u32 full = ring.full + place * 8;
    store_shared(ring.ignored + place * 4, is_ignored ? 1 : 0);
    if (is_ignored) {
      barrier_arrive(full);
      return;
    }
    const i32 begin = at.tile * TileShape<Logits>::columns, rest = vocab - begin;
    const u32 columns = (u32)(rest < TileShape<Logits>::columns ? rest : TileShape<Logits>::columns);
    const u32 bytes = (columns * (u32)sizeof(Stored) + 15) & ~15u;
    barrier_expect(full, bytes);
    copy_in(tile, row + begin, bytes, full);
  }

  CANON_MEMBER i64 id_of(i32 k) const { return (i64)load(row_ids(a, share.row(k))); }
  CANON_MEMBER bool ignores(i64 id) const { return id == a.options.ignore_index; }
  CANON_MEMBER const Stored* row_logits(i32 k) const {
    return (const Stored*)a.logits + row_offset(share.row(k), a.options, a.logits_strides);
  }
  CANON_MEMBER Stored* row_gradient(i32 k) const {
    return (Stored*)a.grad_logits + row_offset(share.row(k), a.options, a.grad_strides);
  }

  // Whether row `lane` does not count. Asked only for rows that the ring's first places can reach: single blocks that
  // asked for 32 went in step (86 % of a copy).
  CANON_MEMBER bool is_lane_ignored() const {
    return lane * ring.least_own_tiles() < ring.places && (i32)lane < share.rows && ignores(id_of((i32)lane));
  }

  // This warp's places for the first time.
  CANON_MEMBER void fill_first(u32 warp, bool is_lane_ignored) const {
    static_assert(fused_row_buffers / 2 <= warp_lanes, "a lane for every row that the ring can hold");
    const u32 ignored = warp_ballot(is_lane_ignored);
    FusedTile at(share, warp);
#pragma unroll 1
    for (u32 place = warp; place < ring.places && at.k < share.rows; place += fused_gradient_warps) {
      if (elected_lane()) fill(place, ring.tile(place), row_logits(at.k), (ignored >> at.k & 1) != 0, at);
      at.go(share, fused_gradient_warps);
    }
  }

  // From row `row` on to `next`; this warp needs nothing more of the rows before. It waits for each row in between,
  // also for those in which it has no tile: once it is told of one, all have left the row that had the buffer before,
  // and somebody has seen that.
  CANON_MEMBER void go_to_row(i32& row, i32 next) const {
#pragma unroll 1
    while (row < next) {
      if (row >= 0) barrier_arrive(ring.info_done + row_buffer(row) * 8);
      ++row;
      if (row < share.rows) barrier_wait(ring.info_here + row_buffer(row) * 8, row_parity(row));
    }
  }

  // All tiles of this warp's places, which it fills again as soon as it is done with them.
  CANON_MEMBER void run(u32 warp, const PlainWindow& window) const {
    FusedTile at(share, warp), ahead(share, warp + ring.places);
    FusedPlace here(warp);
    i32 row = -1, row_ahead = -1; // of `at` and `ahead`
    Stored* to = nullptr;
    const Stored* from = nullptr;
    i64 id_ahead = 0;
    bool is_ahead_ignored = false;
    RowBrief brief;
#pragma unroll 1
    while (at.k < share.rows) {
      if (ahead.k != row_ahead && ahead.k < share.rows) {
        row_ahead = ahead.k;
        id_ahead = id_of(row_ahead);
        if constexpr (waits_at_once) is_ahead_ignored = ignores(id_ahead);
        from = row_logits(row_ahead);
      }
      if (at.k != row) {
        to = row_gradient(at.k);
        go_to_row(row, at.k);
        brief = read_brief(row);
      }
      const u32 tile = kept(ring.tile(here.place));
      // Filled long ago: to see what the copy wrote.
      barrier_wait(ring.full + here.place * 8, here.parity);
      gradient(tile, to, at, brief, window);
      warp_barrier();
      if (ahead.k < share.rows && elected_lane()) {
        if constexpr (!waits_at_once) {
          // The compiler shall not look at the id, and wait for it, any earlier.
          asm volatile("" : "+l"(id_ahead));
          is_ahead_ignored = ignores(id_ahead);
        }
        fill(here.place, tile, from, is_ahead_ignored, ahead);
      }
      const u32 further = here.next_own(warp, fused_gradient_warps, ring.places);
      at.go(share, further);
      ahead.go(share, further);
    }
    go_to_row(row, share.rows);
  }
};

} // namespace canon

#endif
