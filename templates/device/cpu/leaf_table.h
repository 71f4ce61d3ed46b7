// Leaves of all 65,536 logits of a 16-bit type, for machines without fused multiply-adds: looking a leaf up there takes
// a cycle or two, making one takes ten or more. The memory is the calling thread's and outlives the call.
#ifndef BILOGP_DEVICE_CPU_LEAF_TABLE_H
#define BILOGP_DEVICE_CPU_LEAF_TABLE_H

#include "canon/leaf.h"
#include "device/cpu/leaves.h"
#include "device/cpu/storage.h"

namespace canon {

template<class S> constexpr bool uses_leaf_table = BILOGP_SOFTWARE_FMA != 0 && sizeof(typename S::Stored) == 2;

// Logits that |x * c| takes out of the window get whatever is computed; a stream does not use what it gets for them.
template<class S> CANON_COLD void fill_leaf_table(float* table, float c) {
  for (i64 first = 0; first < leaf_count; first += S::group_columns) {
    typename S::Words words;
    for (int i = 0; i < S::group_columns; ++i) words[i] = (typename S::Word)(first + i);
    FloatLanes x[S::group_vectors];
    S::unpack(words, x);
    stream_leaves<S::group_vectors>(x, c);
    for (int v = 0; v < S::group_vectors; ++v)
      for (int i = 0; i < lane_count; ++i) table[first + i * S::group_vectors + v] = x[v][i];
  }
}

// The table for this c, made anew where it holds another and the call is worth it; null where it is not, and where rows
// have temperatures of their own. What a table holds is written behind it: c, negative for float16.
template<class S> CANON_FN const float* leaf_table_for(const RowOptions& options, float c) {
  if constexpr (!uses_leaf_table<S>) return nullptr;
  float* memory = options.leaf_table;
  if (memory == nullptr || options.temperature_rows != nullptr) return nullptr;
  const float label = S::infinity == Float16::infinity ? -c : c;
  if (memory[leaf_count] == label) return memory;
  if (options.makes_leaf_table == 0) return nullptr;
  fill_leaf_table<S>(memory, c);
  memory[leaf_count] = label;
  return memory;
}

template<class S> CANON_FN void look_leaves_up(typename S::Words words, const float* table, FloatLanes* x) {
  CANON_UNROLLED
  for (int v = 0; v < S::group_vectors; ++v) CANON_UNROLLED
  for (int i = 0; i < lane_count; ++i) x[v][i] = table[words[i * S::group_vectors + v]];
}

} // namespace canon

#endif
