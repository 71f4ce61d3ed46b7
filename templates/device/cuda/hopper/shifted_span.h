// Spans of rows that lie at any address: in shared memory they begin at some byte of a vector, and are shifted into
// registers as they are read.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_SHIFTED_SPAN_H
#define BILOGP_DEVICE_CUDA_HOPPER_SHIFTED_SPAN_H

#include "device/cuda/hopper/span.h"

namespace canon {

// The span that begins `Word` words and `bits` bits behind `span`. Each vector takes the one behind it too, which may
// be the next lane's first; without bank conflicts, as span_address says.
template<class S, int Word> CANON_FN void load_span_behind(Vector* v, u32 span, u32 bits) {
#pragma unroll
  for (int j = 0; j < span_vectors; ++j) {
    const u32 address = span ^ (u32)(j << 4);
    const Vector low = load_shared_vector(address), high = load_shared_vector(address + 16);
    const u32 word[2 * vector_words] = {low.word[0],  low.word[1],  low.word[2],  low.word[3],
                                        high.word[0], high.word[1], high.word[2], high.word[3]};
#pragma unroll
    for (int i = 0; i < vector_words; ++i)
      v[j].word[i] =
          Words<S>::columns == 1 ? word[Word + i] : funnel_shift_right(word[Word + i], word[Word + i + 1], bits);
  }
}

// `phase`: the bytes behind `span`, the same in all lanes.
template<class S> CANON_FN void load_shifted_span(Vector* v, u32 span, u32 phase) {
  const u32 bits = (phase & 3) * 8;
  switch (phase / 4) {
  case 0:
    return load_span_behind<S, 0>(v, span, bits);
  case 1:
    return load_span_behind<S, 1>(v, span, bits);
  case 2:
    return load_span_behind<S, 2>(v, span, bits);
  default:
    return load_span_behind<S, 3>(v, span, bits);
  }
}

// Whether there is nothing but -inf in a span.
template<class S, bool AnyAddress> CANON_COLD bool is_empty_span(u32 span, u32 phase) {
  const u32 masked = Words<S>::in_all_columns(Words<S>::minus_infinity);
  Vector v[span_vectors];
  if constexpr (AnyAddress)
    load_shifted_span<S>(v, span, phase);
  else
    load_span(v, span);
  u32 other = 0;
#pragma unroll
  for (int j = 0; j < span_vectors; ++j)
#pragma unroll
    for (int i = 0; i < vector_words; ++i) other |= v[j].word[i] ^ masked;
  return other == 0;
}

// Moves a tile to where its span addresses say, for whoever reads it more than once. The copy that will overwrite it
// belongs to another proxy.
template<class S> CANON_COLD void align_tile(u32 span, u32 phase) {
  Vector v[span_vectors];
  load_shifted_span<S>(v, span, phase);
  warp_barrier();
#pragma unroll
  for (int j = 0; j < span_vectors; ++j)
    store_shared_vector(span ^ (u32)(j << 4), v[j].word[0], v[j].word[1], v[j].word[2], v[j].word[3]);
  order_before_copies();
  warp_barrier();
}

} // namespace canon

#endif
