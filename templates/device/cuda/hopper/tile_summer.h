// How a computing warp sums one tile after another.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_TILE_SUMMER_H
#define BILOGP_DEVICE_CUDA_HOPPER_TILE_SUMMER_H

#include "device/cuda/hopper/shifted_span.h"
#include "device/cuda/hopper/tile_masked.h"
#include "rows/specialization.h"

namespace canon {

// Sums tiles. A warp that met a tile outside the plain window begins the next ones with the way that served, for a
// while: the longer, the more often that was right. `window_table`: where this warp keeps leaves of a window, or 0.
template<bool UseTable, bool AnyAddress = false, bool HasWindowTable = false> struct TileSummer {
  static constexpr int shortest_detour = 2, longest_detour = 128;
  u32 table, lane, window_table = 0;
  PlainWindow window;
  u32 magnitude = 0;            // of the last tile, where it was plain
  TileWay way = TileWay::plain; // of the last one that was not
  int detour = 0, next_detour = shortest_detour;
  float last_maximum = 0.0f; // for windows around it

  CANON_MEMBER TileSummer(u32 leaf_table, u32 lane_of_warp, const PlainWindow& w)
      : table(leaf_table), lane(lane_of_warp), window(w) {}

  // The tile of this lane's span at `span`; `rest` columns from the span's first one are left in the row. A tile at any
  // address begins `phase` bytes further on.
  CANON_MEMBER TileSum sum(u32 span, int rest, u32 phase = 0) {
    constexpr int span_columns = TileShape<Logits>::span_columns;
    const bool has_columns = rest > 0;
    const bool whole_spans = (BILOGP_VOCAB > 0 && BILOGP_VOCAB % span_columns == 0) ||
                             __all_sync(all_lanes, !has_columns || rest >= span_columns);
    if (detour > 0) {
      --detour;
    } else if (whole_spans) {
      // A word of each lane tells most tiles that are not plain.
      const u32 word = load_shared(AnyAddress ? span + ((phase + 3) & ~3u) : span);
      const bool looks_plain = !has_columns || Words<Logits>::largest_pattern(word) <= window.limit;
      if (__all_sync(all_lanes, looks_plain)) {
        Vector v[span_vectors];
        if constexpr (AnyAddress)
          load_shifted_span<Logits>(v, span, phase);
        else
          load_span(v, span);
        magnitude = 0;
        const float s = plain_sum<Logits, UseTable>(v, table, window, magnitude);
        const bool in_window = !has_columns || Words<Logits>::largest_pattern(magnitude) <= window.limit;
        if (__all_sync(all_lanes, in_window)) {
          next_detour -= next_detour > shortest_detour ? 1 : 0;
          return TileSum{has_columns ? s : 0.0f, plain_reference, TileWay::plain, 0.0f};
        }
      } else if (__all_sync(all_lanes,
                            !has_columns || word == Words<Logits>::in_all_columns(Words<Logits>::minus_infinity))) {
        if (__all_sync(all_lanes, !has_columns || is_empty_span<Logits, AnyAddress>(span, phase)))
          return TileSum{0.0f, plain_reference, TileWay::zeros, 0.0f};
      }
      // Enclosed tiles may be of any kind; the others are known as what they are.
      if (way == TileWay::enclosed && next_detour == longest_detour) way = TileWay::plain;
      detour = next_detour - 1;
      next_detour = next_detour < longest_detour ? 4 * next_detour : longest_detour;
    }
    if constexpr (AnyAddress) align_tile<Logits>(span, phase);
    const bool is_cut = __any_sync(all_lanes, rest < span_columns);
    if (is_cut) cut_span<Logits>(span, lane, rest < 0 ? 0 : rest);
    // The end of a row has zeros in it, whatever the other tiles are like: it begins with what takes them, and is no
    // example.
    const TileWay expected = is_cut && way == TileWay::shifted ? TileWay::enclosed : way;
    const TileSum sum =
        masked_tile<Logits, UseTable, HasWindowTable>(span, lane, table, window_table, window, expected, last_maximum);
    if (is_cut && way != TileWay::plain) return sum;
    last_maximum = sum.maximum;
    way = sum.way;
    return sum;
  }
};

} // namespace canon

#endif
