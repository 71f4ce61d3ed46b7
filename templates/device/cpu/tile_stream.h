// The fast ways through a tile, for ordinary rows and for masked ones: leaves scaled by one fixed power of two add as
// plain binary32 (window W0 of the contract, W1 where far logits are clamped).
//
// Blocks are visited in an order of the caller's: two tiles in turn keep more reads in flight than one. Whether every
// leaf was inside the window is found out beside the sum: from the sticky exception flags where the machine has
// scalef (a leaf that left the window overflowed, underflowed or was invalid), by an integer maximum elsewhere.
#ifndef BILOGP_DEVICE_CPU_TILE_STREAM_H
#define BILOGP_DEVICE_CPU_TILE_STREAM_H

#include "canon/node.h"
#include "device/cpu/leaf_table.h"
#include "device/cpu/leaves.h"
#include "device/cpu/tree.h"

namespace canon {

constexpr int block_groups = 16, tile_blocks = 16;

template<class S> struct TileShape {
  static constexpr int block_columns = block_groups * S::group_columns;
  static constexpr int level = S::group_columns == 32 ? 13 : 12; // log2 of the columns
  static constexpr int columns = tile_blocks * block_columns;
};

// |x * c| up to which leaves are taken as they are and at which far ones are clamped, and up to which a logit that is
// not clamped may lie beside a clamped one: with R = 9 a clamped leaf has n - R <= -123, the others >= -94 + 13.
constexpr float plain_exponent_limit = 115.0f, near_exponent_limit = 71.4f;
// A tile's sum above this has a leaf that was not clamped: 2^13 clamped ones come to 2^-101.
constexpr float least_live_sum = 0x1p-90f;

// How a tile's logits are taken: as they are; with far ones clamped; likewise, and read in a way that does not mind
// subnormal ones, of a type whose unpack_scaled does.
enum class Stream { plain, clamped, widened };

enum class Outcome { exact, exact_and_nothing_clamped, failed };

// What a row's temperature makes of these limits.
template<class S> struct StreamLimits {
  float c;
  u32 plain, near; // of |stored bits|
  // float16 ends too early at high temperatures: its largest logits are not far then, and what unpack_scaled makes of
  // infinities would pass for logits.
  bool can_clamp, can_unpack_scaled;
  const float* leaf_table; // of types that use one

  CANON_MEMBER StreamLimits(float scale, const float* table)
      : c(scale), plain(S::magnitude_limit((plain_exponent_limit / scale) * 0.9999f)),
        near(S::magnitude_limit((near_exponent_limit / scale) * 0.9999f)),
        can_clamp(S::widen(__builtin_bit_cast(typename S::Stored, (typename S::Word)plain)) * scale >= 114.0f),
        can_unpack_scaled(S::unpacked_scale == 1.0f || scale >= 0x1p-8f), leaf_table(table) {}
};

// What has been seen of the words of a call to stream_tiles; in registers.
template<class S> struct SeenWords {
  typename S::Words biggest = {}; // magnitude of what was not clamped, where there is no scalef
  typename S::Words most_negative = {}, past_near = ~typename S::Words{};

  CANON_MEMBER void add(const SeenWords& other) {
    biggest = __builtin_elementwise_max(biggest, other.biggest);
    most_negative = __builtin_elementwise_max(most_negative, other.most_negative);
    past_near = __builtin_elementwise_min(past_near, other.past_near);
  }
};

// The words of a group once checked and, for masked rows, clamped: as unsigned words, more negative logits are larger.
template<Stream Way, class S>
CANON_FN typename S::Words guarded(typename S::Words words, const StreamLimits<S>& limits, SeenWords<S>& seen) {
  typedef typename S::Words Words;
  typedef typename S::Word Word;
  if constexpr (Way != Stream::plain) {
    seen.most_negative = __builtin_elementwise_max(seen.most_negative, words);
    seen.past_near = __builtin_elementwise_min(seen.past_near, words - (Word)(S::sign_bit + limits.near + 1));
    words = __builtin_elementwise_min(words, (Words)(Words{} + (Word)(S::sign_bit + limits.plain)));
  }
#if !BILOGP_SCALEF
  typedef typename S::SignedWords Signed;
  if constexpr (Way == Stream::plain)
    seen.biggest = __builtin_elementwise_max(seen.biggest, words & (Word)~S::sign_bit);
  else // negative ones are clamped
    seen.biggest = (Words)__builtin_elementwise_max((Signed)seen.biggest, (Signed)words);
#endif
  return words;
}

template<Stream Way, class S> CANON_FN void unpack_for(typename S::Words words, FloatLanes* x) {
  if constexpr (Way == Stream::widened)
    S::unpack(words, x);
  else
    S::unpack_scaled(words, x);
}

// Sums of Count neighbouring groups, each in its own vector.
template<int Count, Stream Way, class S>
CANON_FN void stream_groups(const typename S::Stored* p, FloatLanes* sums, const StreamLimits<S>& limits,
                            SeenWords<S>& seen) {
  constexpr int vectors = S::group_vectors;
  FloatLanes x[Count * vectors];
  CANON_UNROLLED
  for (int i = 0; i < Count; ++i) {
    const typename S::Words words =
        guarded<Way>(load_vector<typename S::Words>(p + i * S::group_columns), limits, seen);
    if constexpr (uses_leaf_table<S>)
      look_leaves_up<S>(words, limits.leaf_table, x + i * vectors);
    else
      unpack_for<Way, S>(words, x + i * vectors);
  }
  if constexpr (!uses_leaf_table<S>)
    stream_leaves<Count * vectors>(x, Way == Stream::widened ? limits.c : limits.c * S::unpacked_scale);
  CANON_UNROLLED
  for (int i = 0; i < Count; ++i) sums[i] = vectors == 2 ? x[2 * i] + x[2 * i + 1] : x[i];
}

// Whole blocks, of `streams` tiles in turn. blocks[] goes on behind `count` with what will be read next, as far as is
// read ahead.
template<Stream Way, class S>
CANON_FN void stream_blocks(const typename S::Stored* const* blocks, int count, int streams, FloatLanes* sums,
                            const StreamLimits<S>& limits, SeenWords<S>& seen) {
  constexpr int step = lockstep < S::group_vectors ? 1 : lockstep / S::group_vectors;
  constexpr int block_bytes = TileShape<S>::block_columns * (int)sizeof(typename S::Stored);
  const int near = streams * (near_prefetch / block_bytes), far = streams * (far_prefetch / block_bytes);
  for (int b = 0; b < count; ++b) {
    const typename S::Stored *p = blocks[b], *soon = blocks[b + near], *later = blocks[b + far];
    FloatLanes groups[block_groups];
#pragma clang loop unroll_count(groups_unrolled)
    for (int g = 0; g < block_groups; g += step) {
      CANON_UNROLLED
      for (int i = 0; i < step * S::group_columns * (int)sizeof(typename S::Stored); i += 64) {
        prefetch_near((const char*)(soon + g * S::group_columns) + i);
        prefetch_far((const char*)(later + g * S::group_columns) + i);
      }
      stream_groups<step, Way>(p + g * S::group_columns, groups + g, limits, seen);
    }
    sums[b] = tree_of<4>(groups);
  }
}

// Which lanes of a group's vector v stand for the first `valid` columns of the group.
template<class S> CANON_FN IntLanes valid_lanes(int valid, int v) {
  constexpr IntLanes index = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return (index * S::group_vectors + v) < (IntLanes{} + valid);
}

// The words of a group of which `valid` columns are there; missing ones repeat one that is, so that they cannot fail a
// check.
template<class S> CANON_FN typename S::Words group_words(const typename S::Stored* p, int valid) {
  if (valid >= S::group_columns) return load_vector<typename S::Words>(p);
  typename S::Stored copy[S::group_columns];
  for (int i = 0; i < S::group_columns; ++i) copy[i] = load(p + (i < valid ? i : 0));
  return load_vector<typename S::Words>(copy);
}

// The last, incomplete block of a row: `columns` from p on, leaves of missing ones are true zeros. One piece of code
// for all ways, which adds to what a stream has seen.
template<class S> struct LastBlock {
  FloatLanes sum;
  SeenWords<S> seen;
};

template<class S>
CANON_COLD LastBlock<S> stream_last_block(const typename S::Stored* p, int columns, const StreamLimits<S>& limits,
                                          bool clamped) {
  LastBlock<S> last;
  FloatLanes groups[block_groups];
#pragma clang loop unroll(disable)
  for (int g = 0; g < block_groups; ++g) {
    const int begin = g * S::group_columns, valid = columns - begin;
    groups[g] = FloatLanes{};
    if (valid <= 0) continue;
    const typename S::Words words = group_words<S>(p + begin, valid);
    FloatLanes x[S::group_vectors];
    S::unpack(clamped ? guarded<Stream::clamped>(words, limits, last.seen)
                      : guarded<Stream::plain>(words, limits, last.seen),
              x);
    stream_leaves<S::group_vectors>(x, limits.c);
    for (int v = 0; v < S::group_vectors; ++v) x[v] = select(valid_lanes<S>(valid, v), x[v], FloatLanes{});
    groups[g] = S::group_vectors == 2 ? x[0] + x[1] : x[0];
  }
  last.sum = tree_of_16(groups);
  return last;
}

template<Stream Way, class S>
CANON_FN Outcome outcome_of(const StreamLimits<S>& limits, const SeenWords<S>& seen, float total, float least) {
#if BILOGP_SCALEF
  if (exceptions_after(total) || !(total < __builtin_inff())) return Outcome::failed;
#else
  if ((u32)__builtin_reduce_max(seen.biggest) > limits.plain) return Outcome::failed;
#endif
  if constexpr (Way == Stream::plain) return Outcome::exact_and_nothing_clamped;
  const u32 most_negative = __builtin_reduce_max(seen.most_negative);
  if (most_negative <= S::sign_bit + limits.near) return Outcome::exact_and_nothing_clamped;
  const u32 gap = limits.plain - limits.near - 1; // words too near to be clamped, too far to stand beside those
  const bool in_gap = __builtin_reduce_min(seen.past_near)<gap, has_nan = most_negative> S::sign_bit + S::infinity;
  return limits.can_clamp && !in_gap && !has_nan && least > least_live_sum ? Outcome::exact : Outcome::failed;
}

constexpr int most_streams = 2;

// Tiles that are gone through in turn, block by block.
template<class S> struct Streams {
  const typename S::Stored* tiles[most_streams];
  int count;
};

// Sums of the tiles of `now`, of `columns` columns each, times 2^-stream_reference; columns may be less than a tile's,
// the rest is zeros. `next` is what will be gone through then, for reading ahead.
template<Stream Way, class S>
CANON_COLD Outcome stream_tiles(const Streams<S>& now, const Streams<S>& next, int columns,
                                const StreamLimits<S>& row_limits, float* sums) {
  const StreamLimits<S> limits = row_limits; // out of memory that the compiler must take for changing
  constexpr int block = TileShape<S>::block_columns;
  constexpr int ahead = far_prefetch / (block * (int)sizeof(typename S::Stored));
  const typename S::Stored* blocks[most_streams * (tile_blocks + ahead)];
  FloatLanes block_sums[most_streams * tile_blocks];
  const int whole = columns / block, rest = columns % block, streams = now.count;
#pragma clang loop unroll(disable)
  for (int b = 0; b < whole; ++b)
    for (int s = 0; s < streams; ++s) blocks[b * streams + s] = now.tiles[s] + b * block;
#pragma clang loop unroll(disable)
  for (int i = 0; i < ahead * streams; ++i)
    blocks[whole * streams + i] = next.count == 2 ? next.tiles[i & 1] + (i >> 1) * block : next.tiles[0] + i * block;
  SeenWords<S> seen;
#if BILOGP_SCALEF
  clear_exceptions();
#endif
  stream_blocks<Way, S>(blocks, whole * streams, streams, block_sums, limits, seen);
  float total = 0.0f, least = __builtin_inff();
#pragma clang loop unroll(disable)
  for (int s = 0; s < streams; ++s) {
    FloatLanes own[tile_blocks];
#pragma clang loop unroll(disable)
    for (int b = 0; b < tile_blocks; ++b) own[b] = b < whole ? block_sums[b * streams + s] : FloatLanes{};
    if (rest > 0) {
      const LastBlock<S> last = stream_last_block<S>(now.tiles[s] + whole * block, rest, limits, Way != Stream::plain);
      own[whole] = last.sum;
      seen.add(last.seen);
    }
    sums[s] = tree_across(tree_of_16(own));
    total += sums[s];
    least = sums[s] < least ? sums[s] : least;
  }
  return outcome_of<Way>(limits, seen, total, least);
}

} // namespace canon

#endif
