// Nodes of the sum's binary tree, and the stack that joins them in column order.
#ifndef BILOGP_CANON_NODE_H
#define BILOGP_CANON_NODE_H

#include "canon/numbers.h"

namespace canon {

// m * 2^E with m in [1, 2); zero is (0, zero_exponent), poison has a NaN m and E = 0. Between renormalisations m may
// be any pair value in [0.7, 2^20).
struct Node {
  float m;
  i32 E;
};

CANON_FN Node zero_node() {
  return Node{0.0f, zero_exponent};
}
CANON_FN Node poison_node() {
  return Node{quiet_nan(), 0};
}
CANON_FN bool is_poison(Node a) {
  return a.m != a.m;
}
CANON_FN bool is_zero(Node a) {
  return a.m == 0.0f;
}

CANON_FN Node normalised(Node a) {
  if (is_zero(a)) return zero_node();
  if (is_poison(a)) return poison_node();
  const i32 bits = (i32)bits_from_float(a.m);
  const i32 exponent = (bits >> 23) - 127;
  return Node{float_from_bits((u32)(bits - (exponent << 23))), a.E + exponent};
}

// The pair sum of the contract's W2: RN24 of the exact sum, not renormalised.
CANON_FN Node pair_sum(Node a, Node b) {
  const i32 top = a.E > b.E ? a.E : b.E;
  const i32 low = top + absorbed;
  const i32 shift_a = (a.E > low ? a.E : low) - top, shift_b = (b.E > low ? b.E : low) - top;
  return Node{a.m * power_of_two(shift_a) + b.m * power_of_two(shift_b), top};
}

CANON_SHARED Node joined(Node a, Node b) {
  return normalised(pair_sum(a, b));
}

// Two words per node in memory.
CANON_FN void store_node(i32* words, Node a) {
  words[0] = (i32)bits_from_float(a.m);
  words[1] = is_zero(a) ? zero_exponent_stored : a.E;
}
CANON_FN Node load_node(const i32* words) {
  const Node a = {float_from_bits((u32)words[0]), words[1]};
  return is_zero(a) ? zero_node() : is_poison(a) ? poison_node() : a;
}

// Smallest k with 2^k >= columns.
CANON_FN i32 tree_height(i64 columns) {
  return columns <= 1 ? 0 : 64 - count_leading_zeros((u64)(columns - 1));
}

// Aligned sub-trees, pushed from left to right without gaps; siblings join as soon as both are there. What is left
// are the maximal aligned sub-trees of the range: the nodes of a shard.
struct NodeStack {
  static constexpr int capacity = 72; // two per level of 2^31 columns and a little more
  Node nodes[capacity];
  i32 levels[capacity];
  int size = 0;

  // Adds the sub-tree of 2^level columns that begins at `begin`.
  CANON_MEMBER void push(Node node, i64 begin, i32 level) {
    CANON_ROLLED
    while (size > 0 && levels[size - 1] == level && ((begin >> level) & 1)) {
      node = joined(nodes[size - 1], node);
      begin -= (i64)1 << level;
      ++level;
      --size;
    }
    nodes[size] = node;
    levels[size] = level;
    ++size;
  }

  // The sum of all of it, missing right siblings being zero.
  CANON_MEMBER Node root() const {
    Node sum = zero_node();
    CANON_ROLLED
    for (int i = size - 1; i >= 0; --i) sum = joined(nodes[i], sum);
    return sum;
  }
};

// Level of the largest aligned sub-tree that begins at `begin` inside [begin, end), begin < end.
CANON_FN i32 largest_level(i64 begin, i64 end) {
  const i32 fitting = 63 - count_leading_zeros((u64)(end - begin));
  if (begin == 0) return fitting;
  const i32 aligned = count_trailing_zeros((u64)begin);
  return aligned < fitting ? aligned : fitting;
}

// Where a shard's range ends for the tree: the last shard carries the zero padding up to the power of two.
CANON_FN i64 padded_end(i64 shard_end, i64 full_vocab) {
  return shard_end == full_vocab ? (i64)1 << tree_height(full_vocab) : shard_end;
}

} // namespace canon

#endif
