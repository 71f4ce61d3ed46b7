// Nodes of a row's tiles, and the row's stack of them.
#ifndef BILOGP_DEVICE_CPU_TILE_H
#define BILOGP_DEVICE_CPU_TILE_H

#include "device/cpu/tile_general.h"
#include "device/cpu/tile_stream.h"
#include "rows/specialization.h"

namespace canon {

template<class Arguments> CANON_FN const Stored* logits_of(const Arguments& a, i64 row) {
  return (const Stored*)a.logits + row_offset(row, a.options, a.logits_strides);
}

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

  // Nodes of the tiles of `now`, of `columns` columns each, 1 to a tile's, padded with zeros.
  CANON_MEMBER void nodes(const Streams<S>& now, const Streams<S>& next, int columns, Node* out) {
    float sums[most_streams];
    Outcome outcome = Outcome::failed;
    if (uses_leaf_table<S> && limits.leaf_table == nullptr) way = TileWay::general;
    if constexpr (S::shuns_subnormals) {
      if (!limits.can_unpack_scaled && way < TileWay::pairs) way = TileWay::widened;
      if (way == TileWay::widened &&
          (outcome = stream_tiles<Stream::widened, S>(now, next, columns, limits, sums)) == Outcome::failed)
        way = TileWay::general;
    }
    if (way == TileWay::plain &&
        (outcome = stream_tiles<Stream::plain, S>(now, next, columns, limits, sums)) == Outcome::failed)
      way = TileWay::clamped;
    if (way == TileWay::clamped && outcome == Outcome::failed &&
        (outcome = stream_tiles<Stream::clamped, S>(now, next, columns, limits, sums)) == Outcome::failed)
      way = TileWay::general;
    if (outcome == Outcome::exact_and_nothing_clamped) way = TileWay::plain;
    if constexpr (S::shuns_subnormals)
      if (outcome != Outcome::failed && subnormal_operand_met() && has_many_subnormals<S>(now.tiles[0], columns))
        way = TileWay::widened;
#pragma clang loop unroll(disable)
    for (int s = 0; s < now.count; ++s)
      out[s] =
          outcome == Outcome::failed ? rare_node(now.tiles[s], columns) : normalised(Node{sums[s], stream_reference});
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

// Pushes the nodes of columns of rows.
template<class S> struct RowTiles {
  static constexpr i64 tile = TileShape<S>::columns;
  static constexpr i64 most = 32; // pairs of tiles whose second halves wait for the first ones

  i64 begin, tree_end, live_end; // columns; those from live_end on are zero and not looked at
  TileSums<S>& sums;

  // Columns [first, end) of a vocabulary of full_vocab columns, of which vocab_size count.
  CANON_MEMBER RowTiles(i64 first, i64 end, i64 full_vocab, i64 vocab_size, TileSums<S>& tile_sums)
      : begin(first), tree_end(padded_end(end, full_vocab)), live_end(vocab_size < end ? vocab_size : end),
        sums(tile_sums) {}

  struct Step {
    i32 level;   // log2 of the columns that one node stands for
    i64 columns; // of a node, that are to be looked at
    i64 length;  // nodes in a stream
    int streams;
  };

  CANON_MEMBER Step step_at(i64 at) const {
    const i64 whole_tiles = (at & (tile - 1)) == 0 ? (live_end - at) / tile : 0;
    Step step = {TileShape<S>::level, tile, 1, 1};
    if (whole_tiles >= 2) { // two halves of the range in turn
      step.streams = 2;
      step.length = whole_tiles / 2 < most ? whole_tiles / 2 : most;
    } else {
      const i32 largest = largest_level(at, tree_end);
      if (at >= live_end || largest < step.level) step.level = largest;
      const i64 width = (i64)1 << step.level, live = live_end - at;
      step.columns = live < width ? live : width;
    }
    return step;
  }

  CANON_MEMBER Streams<S> streams_of(const Step& step, const typename S::Stored* first) const {
    return {{first, first + step.length * tile}, step.streams};
  }

  // `row` points at column `begin`; next_row at that of the row behind it, which is read ahead.
  CANON_MEMBER void push(NodeStack& stack, const typename S::Stored* row, const typename S::Stored* next_row) {
    if (sums.way == TileWay::general) sums.way = TileWay::clamped;
    i64 at = begin;
    while (at < tree_end) {
      const Step step = step_at(at);
      const i64 after = at + step.streams * step.length * ((i64)1 << step.level);
      const bool goes_on = after < live_end;
      const Streams<S> behind =
          streams_of(step_at(goes_on ? after : begin), goes_on ? row + (after - begin) : next_row);
      Node nodes[2 * most];
      for (i64 i = 0; i < step.length; ++i) {
        const Streams<S> now = streams_of(step, row + (at - begin) + i * tile);
        const Streams<S> next = i + 1 < step.length ? streams_of(step, now.tiles[0] + tile) : behind;
        Node pair[2] = {zero_node(), zero_node()};
        if (step.columns > 0) sums.nodes(now, next, (int)step.columns, pair);
        nodes[i] = pair[0];
        if (step.streams == 2) nodes[step.length + i] = pair[1];
      }
      for (i64 i = 0; i < step.streams * step.length; ++i, at += (i64)1 << step.level)
        stack.push(nodes[i], at, step.level);
    }
  }
};

} // namespace canon

#endif
