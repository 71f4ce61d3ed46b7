// How a computing warp sums one tile after another.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_TILE_SUMMER_H
#define BILOGP_DEVICE_CUDA_HOPPER_TILE_SUMMER_H

#include "device/cuda/hopper/shifted_span.h"
#include "device/cuda/hopper/tile_masked.h"
#include "rows/specialization.h"

namespace canon {

// Sums tiles. A warp that met a tile outside the plain window begins the next ones with the way that served, for a
// while: the longer, the more often that was right.
template<bool UseTable, bool AnyAddress = false> struct TileSummer {
  static constexpr int longest_detour = 128;
  u32 table, lane;
  PlainWindow window;
  u32 magnitude = 0; // of the last tile, where it was plain
  TileWay way = TileWay::plain;
  int detour = 0, next_detour = 1;
  float last_maximum = 0.0f; // for the shifted way

  CANON_MEMBER TileSummer(u32 leaf_table, u32 lane_of_warp, const PlainWindow& w)
      : table(leaf_table), lane(lane_of_warp), window(w) {}

  // For rows of another temperature.
  CANON_MEMBER void set_window(const PlainWindow& w) {
    window = w;
    way = TileWay::plain;
  }

  // The tile of this lane's span at `span`; `rest` columns from the span's first one are left in the row. A tile at any
  // address begins `phase` bytes further on.
  CANON_MEMBER TileSum sum(u32 span, int rest, u32 phase = 0) {
    constexpr int span_columns = TileShape<Logits>::span_columns;
    const bool has_columns = rest > 0;
    const bool whole_spans = (BILOGP_VOCAB > 0 && BILOGP_VOCAB % span_columns == 0) ||
                             __all_sync(all_lanes, !has_columns || rest >= span_columns);
    if (way == TileWay::plain && whole_spans) {
      magnitude = 0;
      Vector v[span_vectors];
      if constexpr (AnyAddress)
        load_shifted_span<Logits>(v, span, phase);
      else
        load_span(v, span);
      const float s = plain_sum<Logits, UseTable>(v, table, window, magnitude);
      const bool in_window = !has_columns || Words<Logits>::largest_pattern(magnitude) <= window.limit;
      if (__all_sync(all_lanes, in_window)) {
        next_detour -= next_detour > 1 ? 1 : 0;
        return TileSum{has_columns ? s : 0.0f, plain_reference, TileWay::plain, 0.0f};
      }
      detour = next_detour;
      next_detour = next_detour < longest_detour ? 2 * next_detour : longest_detour;
    }
    if constexpr (AnyAddress) align_tile<Logits>(span, phase);
    if (__any_sync(all_lanes, rest < span_columns)) cut_span<Logits>(span, lane, rest < 0 ? 0 : rest);
    const TileSum sum = masked_tile<Logits, UseTable>(span, lane, table, window, way, last_maximum);
    last_maximum = sum.maximum;
    // A run of empty tiles ends with a tile that is probably plain.
    if (sum.way == TileWay::empty || way == TileWay::empty)
      way = sum.way == TileWay::empty ? TileWay::empty : TileWay::plain;
    else
      way = --detour > 0 ? sum.way : TileWay::plain;
    return sum;
  }
};

} // namespace canon

#endif
