// Nodes of a row's tiles, and the row's stack of them.
#ifndef BILOGP_DEVICE_CPU_TILE_H
#define BILOGP_DEVICE_CPU_TILE_H

#include "device/cpu/tile_general.h"
#include "device/cpu/tile_stream.h"

namespace canon {

// The way that the last tile went. It is tried first for the next one, so that a batch of masked rows pays for one
// failed try and not for one per tile.
enum class TileWay { plain, clamped, widened, pairs, general };

template<class S> CANON_COLD bool has_many_subnormals(const typename S::Stored* p, int columns) {
  constexpr int few = 4;
  typedef typename S::Words Words;
  Words count = {};
  for (int i = 0; i + S::group_columns <= columns; i += S::group_columns) {
    const Words magnitude = load_vector<Words>(p + i) & (typename S::Word) ~S::sign_bit;
    count -= (Words)(magnitude - (typename S::Word)1 < (typename S::Word)(S::smallest_normal - 1));
  }
  return __builtin_reduce_add(count) > few;
}

template<class S> struct TileSums {
  StreamLimits<S> limits;
  Scale scale;
  TileWay& way;

  // `leaf_table` as leaf_table_for gives it.
  CANON_MEMBER TileSums(const Scale& s, const float* leaf_table, TileWay& last_way)
      : limits(s.c, leaf_table), scale(s), way(last_way) {}

  // Nodes of `streams` tiles of `columns` columns each, 1 to a tile's, padded with zeros.
  CANON_MEMBER void nodes(const typename S::Stored* const* tiles, int streams, int columns, Node* out) {
    float sums[most_streams];
    Outcome outcome = Outcome::failed;
    if (uses_leaf_table<S> && limits.leaf_table == nullptr) way = TileWay::general;
    if constexpr (S::shuns_subnormals) {
      if (!limits.can_unpack_scaled && way < TileWay::pairs) way = TileWay::widened;
      if (way == TileWay::widened &&
          (outcome = stream_tiles<Stream::widened, S>(tiles, streams, columns, limits, sums)) == Outcome::failed)
        way = TileWay::general;
    }
    if (way == TileWay::plain &&
        (outcome = stream_tiles<Stream::plain, S>(tiles, streams, columns, limits, sums)) == Outcome::failed)
      way = TileWay::clamped;
    if (way == TileWay::clamped && outcome == Outcome::failed &&
        (outcome = stream_tiles<Stream::clamped, S>(tiles, streams, columns, limits, sums)) == Outcome::failed)
      way = TileWay::general;
    if (outcome == Outcome::exact_and_nothing_clamped) way = TileWay::plain;
    if constexpr (S::shuns_subnormals)
      if (outcome != Outcome::failed && subnormal_operand_met() && has_many_subnormals<S>(tiles[0], columns))
        way = TileWay::widened;
#pragma clang loop unroll(disable)
    for (int s = 0; s < streams; ++s)
      out[s] = outcome == Outcome::failed ? rare_node(tiles[s], columns) : normalised(Node{sums[s], stream_reference});
  }

  // Pairs at once where the tile before needed them.
  CANON_MEMBER Node rare_node(const typename S::Stored* tile, int columns) {
    if (way == TileWay::pairs) {
      const PairSum pairs = tile_pairs<S>(tile, columns, scale, true);
      const float exponent = pairs.biggest * scale.c;
      if (exponent <= plain_exponent_limit) way = TileWay::plain;
      if (exponent <= 0x1p20f && pairs.biggest <= scale.bound) return pairs.node;
    }
    bool uses_pairs = false;
    const Node node = tile_general<S>(tile, columns, scale, uses_pairs);
    way = uses_pairs && BILOGP_SOFTWARE_FMA == 0 ? TileWay::pairs : TileWay::general;
    return node;
  }
};

// Pushes the nodes of columns [begin, end) of a vocabulary of full_vocab columns; `row` points at column `begin`.
// Columns from `vocab_size` on are zero and not looked at.
template<class S>
CANON_FN void push_columns(NodeStack& stack, const typename S::Stored* row, i64 begin, i64 end, i64 full_vocab,
                           i64 vocab_size, TileSums<S>& tiles) {
  constexpr i64 tile = TileShape<S>::columns;
  constexpr i64 most = 32; // pairs of tiles whose second halves wait for the first ones
  const i64 tree_end = padded_end(end, full_vocab), live_end = vocab_size < end ? vocab_size : end;
  i64 at = begin;
  if (tiles.way == TileWay::general) tiles.way = TileWay::clamped;
  while (at < tree_end) {
    const i64 whole_tiles = (at & (tile - 1)) == 0 ? (live_end - at) / tile : 0;
    i32 level = TileShape<S>::level;
    i64 columns = tile, half = 1;
    int streams = 1;
    if (whole_tiles >= 2) { // two halves of the range in turn
      streams = 2;
      half = whole_tiles / 2 < most ? whole_tiles / 2 : most;
    } else {
      const i32 largest = largest_level(at, tree_end);
      if (at >= live_end || largest < level) level = largest;
      const i64 width = (i64)1 << level, live = live_end - at;
      columns = live < width ? live : width;
    }
    Node nodes[2 * most];
    for (i64 i = 0; i < half; ++i) {
      const typename S::Stored* first = row + (at - begin) + i * tile;
      const typename S::Stored* both[2] = {first, first + half * tile};
      Node pair[2] = {zero_node(), zero_node()};
      if (columns > 0) tiles.nodes(both, streams, (int)columns, pair);
      nodes[i] = pair[0];
      if (streams == 2) nodes[half + i] = pair[1];
    }
    for (i64 i = 0; i < streams * half; ++i, at += (i64)1 << level) stack.push(nodes[i], at, level);
  }
}

} // namespace canon

#endif
