// The plain window of a temperature, and the table of exact leaves that serves half of the bfloat16 columns.
//
// Plain: every |x| * c is at most 115, so that all leaves at reference 6 are ordinary binary32 numbers (the contract's
// W0). The polynomial then costs a dozen instructions a column, more than the memory leaves time for; a table lookup
// costs half, on other units. 8192 entries do: sign, 7 bits of mantissa, and 32 binades from the largest plain one down
// to one whose leaves are exactly 1, to which smaller logits are raised.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_LEAF_TABLE_H
#define BILOGP_DEVICE_CUDA_HOPPER_LEAF_TABLE_H

#include "device/cuda/hopper/memory.h"
#include "device/cuda/hopper/words.h"

namespace canon {

constexpr i32 plain_reference = 6;
constexpr float plain_magic = round_magic - (float)plain_reference;
constexpr float plain_exponent_limit = 115.4f; // nearest integers up to 115
constexpr float flushed_exponent = -120.99f;   // of a leaf that is less than 2^-126 at that reference, but not by much

// Whether additions that flush subnormal numbers take this leaf for a zero.
CANON_FN bool is_flushed(float leaf) {
  return bits_from_float(leaf) < 0x00800000u;
}

// Portable bfloat16 takes every second word from the table; the device's own exponential is cheaper than a table.
template<class S> struct LeafTable {
  static constexpr bool exists = false;
};
template<> struct LeafTable<Bfloat16> {
  static constexpr bool exists = BILOGP_NUMERICS == 0;
};

// The table lies in two halves of 16 KB whose distance is the place of the sign bit in the address, so that one mask
// makes an address of any word. What else needs memory lies in between.
constexpr u32 table_half = 0x4000, table_negative = 0x20000, table_end = table_negative + table_half;

// Leaves of a window that one warp keeps (tile_masked.h), at a multiple of their size.
constexpr u32 window_entries = 255, window_table_bytes = 1024;

struct PlainWindow {
  float c, inverse; // inverse: 1 / c, for bounds that need not be exact
  u32 limit;        // largest stored magnitude
  u32 floor;        // for masked tiles: the stored number whose leaf at this reference is subnormal; 0: there is none
  u32 small;        // magnitude to which smaller ones are raised for the table, in all columns of a word
};

CANON_FN i32 largest_table_binade(float temperature) {
  return (i32)(bits_from_float(temperature) >> 23) - 127 + 6; // 2^k <= 64 T: then leaves below 2^(k - 31) are exactly 1
}

// `temperature` matters to the table only.
template<class S> CANON_FN PlainWindow plain_window(float c, float temperature) {
  PlainWindow w;
  w.c = c;
  w.inverse = 1.0f / c;
  w.small = 0;
  float largest = (plain_exponent_limit / c) * 0.99999f, table_limit = 0.0f;
  if constexpr (LeafTable<S>::exists) {
    const i32 k = largest_table_binade(temperature);
    table_limit = power_of_two(k + 1);
    largest = largest < table_limit * 0.99999f ? largest : table_limit * 0.99999f;
    w.small = Words<S>::in_all_columns(Words<S>::truncated(power_of_two(k - 31)));
  }
  w.limit = Words<S>::truncated(largest);
  w.floor = Words<S>::truncated(flushed_exponent * w.inverse);
  const float floor = Words<S>::value(w.floor);
  const bool in_table = !LeafTable<S>::exists || -floor < table_limit;
  if (!in_table || !is_flushed(leaf_scaled(floor, c, plain_magic))) w.floor = 0;
  return w;
}

// Bits 4 to 7 folded into 0 to 3: logits of few mantissa bits would else sit in few banks.
CANON_FN u32 spread_over_banks(u32 index) {
  return index ^ ((index >> 4) & 0x000f000fu);
}

template<class S> CANON_FN void build_leaf_table(u32 table, float c, float temperature, u32 thread, u32 threads) {
  const i32 lowest = largest_table_binade(temperature) - 31 + 127; // as a biased exponent
  for (u32 i = thread; i < 8192; i += threads) {
    const u32 low_bits = (i >> 7) & 31, sign = i >> 12;
    const u32 exponent = (u32)lowest + ((low_bits - (u32)lowest) & 31);
    const float x = float_from_bits((sign << 31) | (exponent << 23) | ((i & 127) << 16));
    const u32 place = spread_over_banks(i) & 4095;
    store_shared(table + sign * table_negative + place * 4, bits_from_float(leaf_scaled(x, c, plain_magic)));
  }
}

// Where the table lies at a multiple of its halves' size, an address in it takes no addition.
#ifndef BILOGP_ALIGNED_TABLE
#define BILOGP_ALIGNED_TABLE 0
#endif
CANON_FN u32 table_address(u32 table, u32 shifted) {
  const u32 place = shifted & (table_negative | (table_half - 4));
  return BILOGP_ALIGNED_TABLE ? table | place : table + place;
}

// Leaves of a bfloat16 word's two columns. Every address is legal; the caller's check of magnitudes decides whether the
// values count.
CANON_FN void table_leaves(u32 word, u32 small, u32 table, float& low, float& high) {
  const u32 raised = spread_over_banks(PackedBfloat16::larger_magnitude(word, small));
  low = load_shared_constant(table_address(table, raised << 2));
  high = load_shared_constant(table_address(table, raised >> 14));
}

} // namespace canon

#endif
