// The tree: its nodes are added as integers, no floating-point operation takes part.
#include <algorithm>
#include <bit>
#include <utility>

#include "tests/reference/canon_arithmetic.hpp"

namespace bilogp::reference::detail {

Term to_term(const Leaf& leaf) {
  if (leaf.kind == LeafKind::zero) return {};
  if (leaf.kind == LeafKind::poison) return poison_term;
  const std::uint32_t bits = as_bits(leaf.p);
  return {(bits & 0x7fffffU) | 0x800000U, leaf.n + static_cast<std::int32_t>(bits >> 23) - 127};
}

Term to_term(const Node& node) {
  if (node.m_bits == 0) return {};
  if (node.m_bits == quiet_nan) return poison_term;
  return {(node.m_bits & 0x7fffffU) | 0x800000U, node.E};
}

Node to_node(const Term& term) {
  if (term.is_zero()) return {};
  if (term.is_poison()) return {quiet_nan, 0};
  return {(term.significand & 0x7fffffU) | 0x3f800000U, term.exponent};
}

Term add_terms(const Term& a, const Term& b) {
  if (a.is_poison() || b.is_poison()) return poison_term;
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  const Term& large = a.exponent >= b.exponent ? a : b;
  const Term& small = a.exponent >= b.exponent ? b : a;
  const std::int64_t distance = std::int64_t{large.exponent} - small.exponent;
  // From 25 on the smaller side is less than half of the larger one's last place, which has 24 bits already.
  if (distance >= 25) return large;
  const std::uint64_t exact = (std::uint64_t{large.significand} << distance) + small.significand;
  const int excess = static_cast<int>(std::bit_width(exact)) - 24; // the bits below the 24 that stay
  const std::int32_t exponent = small.exponent + excess;
  if (excess == 0) return {static_cast<std::uint32_t>(exact), exponent};
  std::uint64_t kept = exact >> excess;
  const std::uint64_t rest = exact & ((std::uint64_t{1} << excess) - 1);
  const std::uint64_t half = std::uint64_t{1} << (excess - 1);
  if (rest > half || (rest == half && (kept & 1U) != 0)) ++kept;
  if (kept == (std::uint64_t{1} << 24)) return {std::uint32_t{1} << 23, exponent + 1};
  return {static_cast<std::uint32_t>(kept), exponent};
}

Term tree_sum(std::vector<Term> terms) {
  if (terms.empty()) return {};
  // The last node of an odd level meets only padding, and zero is the exact identity.
  for (std::size_t live = terms.size(); live > 1; live = (live + 1) / 2) {
    for (std::size_t k = 0; k < live / 2; ++k) terms[k] = add_terms(terms[2 * k], terms[2 * k + 1]);
    if (live % 2 != 0) terms[live / 2] = terms[live - 1];
  }
  return terms.front();
}

Term sum_row(std::span<const std::uint32_t> logits, std::int64_t begin, const RowOptions& options) {
  const Scale scale = make_scale(options.temperature);
  if (!scale.valid) return poison_term;
  const auto stored = static_cast<std::int64_t>(logits.size());
  const std::int64_t used =
      options.vocab_size < 0 ? stored : std::clamp(options.vocab_size - begin, std::int64_t{0}, stored);
  std::vector<Term> terms;
  terms.reserve(static_cast<std::size_t>(used));
  for (const std::uint32_t logit : logits.first(static_cast<std::size_t>(used)))
    terms.push_back(to_term(make_leaf(logit, scale)));
  return tree_sum(std::move(terms));
}

std::vector<Node> shard_row(std::span<const std::uint32_t> logits, std::int64_t begin, std::int64_t end,
                            std::int64_t full_vocab, const RowOptions& options) {
  std::vector<Node> nodes;
  if (begin >= end) return nodes;
  const auto padded = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(full_vocab)));
  const std::int64_t stop = end == full_vocab ? padded : end; // the padding belongs to the last shard
  for (std::int64_t at = begin; at < stop;) {
    // Aligned at `at` and not beyond the shard: the largest power of two that satisfies both.
    std::int64_t size = at == 0 ? padded : at & -at;
    while (at + size > stop) size /= 2;
    const std::int64_t first = std::min(at, end);
    const std::int64_t last = std::min(at + size, end);
    const auto columns =
        logits.subspan(static_cast<std::size_t>(first - begin), static_cast<std::size_t>(last - first));
    nodes.push_back(to_node(sum_row(columns, at, options)));
    at += size;
  }
  return nodes;
}

} // namespace bilogp::reference::detail
