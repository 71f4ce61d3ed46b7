// A table of exact leaves for the bfloat16 words of one block, in 32 KB: what leaf_table.h holds in two halves far
// apart, for kernels that leave most of the shared memory alone.
//
// Its 8192 places: sign, low five bits of the exponent, mantissa, as there. One shift and one operation on a word make
// the places of both its columns: the sign is folded into the bit above the five, which the five tell within the plain
// window, and mantissa bits into those that choose the bank.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_BLOCK_LEAVES_H
#define BILOGP_DEVICE_CUDA_HOPPER_BLOCK_LEAVES_H

#include "device/cuda/hopper/span.h"

namespace canon {

constexpr u32 block_leaves = 8192;

// In the low 13 bits of each half; of a stored number, or of two.
CANON_FN u32 leaf_places(u32 word) {
  return word ^ ((word >> 3) & 0x100f100fu);
}

// Four neighbours at a time. Their places are neighbours too, in an order that two bits of the mantissa give.
CANON_FN void build_block_leaves(u32 table, float c, float temperature, u32 thread, u32 threads) {
  const u32 lowest = (u32)(largest_table_binade(temperature) - 31 + 127);
  for (u32 i = thread * 4; i < block_leaves; i += threads * 4) {
    const u32 exponent = lowest + (((i >> 7) - lowest) & 31);
    const u32 first = ((i >> 12) << 15) | (exponent << 7) | (i & 127);
    const u32 place = leaf_places(first), order = place & 3;
    u32 leaf[4];
#pragma unroll
    for (u32 j = 0; j < 4; ++j)
      leaf[j] = bits_from_float(leaf_scaled(float_from_bits((first | (j ^ order)) << 16), c, plain_magic));
    store_shared_vector(table + ((place << 2) & 0x7ff0), leaf[0], leaf[1], leaf[2], leaf[3]);
  }
}

CANON_FN float block_leaves_sum(u32 word, u32 small, u32 table) {
  const u32 places = leaf_places(PackedBfloat16::larger_magnitude(word, small));
  return load_shared_constant(table + ((places << 2) & 0x7ffc)) +
         load_shared_constant(table + ((places >> 14) & 0x7ffc));
}

// Sum of a vector in the plain window, the last `TableWords` of its words from the table.
template<class S, int TableWords>
CANON_FN float plain_vector_sum_by_table(const Vector& v, u32 table, const PlainWindow& window) {
  float s[vector_words];
#pragma unroll
  for (int i = 0; i < vector_words; ++i) {
    const bool computed = TableWords == 2 ? i % 2 == 0 : i < vector_words - TableWords;
    s[i] = computed ? word_sum<S>(v.word[i], window.c, plain_magic) : block_leaves_sum(v.word[i], window.small, table);
  }
  return tree_of_4(s);
}

} // namespace canon

#endif
