// The public face: each function works in the default floating environment and gives the caller's back.
#include "tests/reference/canon_reference.hpp"

#include <bit>
#include <stdexcept>

#include "tests/reference/canon_arithmetic.hpp"

namespace bilogp::reference {
namespace {

// node(column, size) of the contract from a list of maximal sub-trees, taken in column order.
class ShardJoiner {
public:
  ShardJoiner(std::span<const ShardList> shards, std::int64_t full_vocab, std::int64_t padded) {
    for (const ShardList& shard : shards) {
      const std::int64_t stop = shard.end == full_vocab ? padded : shard.end;
      std::int64_t at = shard.begin;
      for (const Node& node : shard.nodes) {
        std::int64_t size = at == 0 ? padded : at & -at;
        while (at + size > stop) size /= 2;
        pieces_.push_back({at, size, node});
        at += size;
      }
    }
  }

  Node node(std::int64_t begin, std::int64_t size) {
    if (next_ == pieces_.size() || size == 0) throw std::invalid_argument("the shards do not cover the row");
    if (pieces_[next_].begin == begin && pieces_[next_].size == size) return pieces_[next_++].node;
    const Node left = node(begin, size / 2);
    return add(left, node(begin + size / 2, size / 2));
  }

private:
  struct Piece {
    std::int64_t begin;
    std::int64_t size;
    Node node;
  };
  std::vector<Piece> pieces_;
  std::size_t next_ = 0;
};

} // namespace

Node sum(std::span<const std::uint32_t> logits, std::int64_t begin, const RowOptions& options) {
  const detail::DefaultEnvironment environment;
  return detail::to_node(detail::sum_row(logits, begin, options));
}

RowAnswer score(std::span<const std::uint32_t> logits, std::span<const std::int64_t> target_ids,
                const RowOptions& options) {
  const detail::DefaultEnvironment environment;
  return detail::score_row(logits, target_ids, options);
}

std::vector<std::uint32_t> gradient(std::span<const std::uint32_t> logits, std::int64_t target_id, float grad_logp,
                                    const RowOptions& options) {
  const detail::DefaultEnvironment environment;
  return detail::gradient_row(logits, target_id, grad_logp, options);
}

std::vector<Node> shard_nodes(std::span<const std::uint32_t> logits, std::int64_t begin, std::int64_t end,
                              std::int64_t full_vocab, const RowOptions& options) {
  const detail::DefaultEnvironment environment;
  return detail::shard_row(logits, begin, end, full_vocab, options);
}

Node add(const Node& left, const Node& right) {
  return detail::to_node(detail::add_terms(detail::to_term(left), detail::to_term(right)));
}

Node join_shards(std::span<const ShardList> shards, std::int64_t full_vocab) {
  const auto padded = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(full_vocab)));
  return ShardJoiner(shards, full_vocab, padded).node(0, padded);
}

} // namespace bilogp::reference
