// The sum's tree inside registers: sixteen vectors of sixteen neighbouring nodes each become one vector of sixteen
// sums, and that one becomes a single sum. Every add joins two siblings, the left one first.
#ifndef BILOGP_DEVICE_CPU_TREE_H
#define BILOGP_DEVICE_CPU_TREE_H

#include "canon/node.h"
#include "device/cpu/storage.h"

namespace canon {

// Even and odd nodes of two vectors side by side. For the first two levels the results stay within quarters of the
// vector (cheap on every machine) and the last two levels move whole quarters, so that order is kept at the end.
template<class V> CANON_FN V even_nodes(V a, V b) {
  return __builtin_shufflevector(a, b, 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30);
}
template<class V> CANON_FN V odd_nodes(V a, V b) {
  return __builtin_shufflevector(a, b, 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31);
}
template<class V> CANON_FN V even_quarters(V a, V b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
}
template<class V> CANON_FN V odd_quarters(V a, V b) {
  return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
}

// 2^Level vectors in column order -> one vector of 16 sums in column order (for Level 4).
template<int Level> CANON_FN FloatLanes tree_of(const FloatLanes* v) {
  if constexpr (Level == 0) {
    return *v;
  } else {
    const FloatLanes a = tree_of<Level - 1>(v), b = tree_of<Level - 1>(v + (1 << (Level - 1)));
    if constexpr (Level <= 2) return even_nodes(a, b) + odd_nodes(a, b);
    return even_quarters(a, b) + odd_quarters(a, b);
  }
}

// The same where a call costs less than its text.
CANON_COLD FloatLanes tree_of_16(const FloatLanes* v) {
  return tree_of<4>(v);
}

CANON_FN float tree_across(FloatLanes v) {
  float sums[lane_count];
  store_vector(sums, v);
  for (int step = 1; step < lane_count; step *= 2)
    for (int i = 0; i < lane_count; i += 2 * step) sums[i] = sums[i] + sums[i + step];
  return sums[0];
}

// The same over pairs (s, R), the contract's W2.
struct PairVector {
  FloatLanes s;
  IntLanes R;
};

CANON_FN PairVector pair_sums(FloatLanes as, IntLanes aR, FloatLanes bs, IntLanes bR) {
  const IntLanes top = aR > bR ? aR : bR;
  const IntLanes low = top + absorbed;
  const UIntLanes shift_a = (UIntLanes)((aR > low ? aR : low) - top + 127) << 23;
  const UIntLanes shift_b = (UIntLanes)((bR > low ? bR : low) - top + 127) << 23;
  return PairVector{as * lanes_from_bits<FloatLanes>(shift_a) + bs * lanes_from_bits<FloatLanes>(shift_b), top};
}

CANON_COLD PairVector pair_tree(PairVector* v) {
#pragma clang loop unroll(disable)
  for (int width = 16, level = 1; width > 1; width /= 2, ++level)
#pragma clang loop unroll(disable)
    for (int k = 0; k < width / 2; ++k) {
      const PairVector a = v[2 * k], b = v[2 * k + 1];
      v[k] = level <= 2
                 ? pair_sums(even_nodes(a.s, b.s), even_nodes(a.R, b.R), odd_nodes(a.s, b.s), odd_nodes(a.R, b.R))
                 : pair_sums(even_quarters(a.s, b.s), even_quarters(a.R, b.R), odd_quarters(a.s, b.s),
                             odd_quarters(a.R, b.R));
    }
  return v[0];
}

CANON_FN Node pair_across(PairVector v) {
  float s[lane_count];
  i32 R[lane_count];
  store_vector(s, v.s);
  store_vector(R, v.R);
  for (int step = 1; step < lane_count; step *= 2)
    for (int i = 0; i < lane_count; i += 2 * step) {
      const Node sum = pair_sum(Node{s[i], R[i]}, Node{s[i + step], R[i + step]});
      s[i] = sum.m;
      R[i] = sum.E;
    }
  return normalised(Node{s[0], R[0]});
}

} // namespace canon

#endif
