// The slow reference: canon-1 for one row, scalar, written from the contract's text alone.
//
// It shares no code with the templates: tree nodes are added as integers, and rounding is done on integers. It is what
// every kernel is compared with, byte for byte, in tests and by `bilogp-score --verify`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bilogp::reference {

enum class Storage { float32, float16, bfloat16 };

// A node of the sum: m in [1, 2) and E, zero as (+0.0, INT32_MIN), poison as (NaN 0x7fc00000, 0).
struct Node {
  std::uint32_t m_bits = 0;
  std::int32_t E = INT32_MIN;
  friend bool operator==(const Node&, const Node&) = default;
};

struct RowOptions {
  std::int64_t vocab_size = -1; // -1: all columns
  std::int64_t ignore_index = -100;
  float temperature = 1.0F;
};

// floats as bits. A temperature outside [2^-20, 2^20] poisons the row, as an entry of a temperature tensor does.
struct RowAnswer {
  std::vector<std::uint32_t> logp; // one per target id
  std::uint32_t lse = 0;
  Node state;
};

// Widens a stored value exactly to binary32 bits.
std::uint32_t widen(Storage storage, const void* element);
// Rounds binary32 bits to the storage type, to nearest even; NaNs become the contract's quiet NaN.
std::uint32_t narrow(Storage storage, std::uint32_t bits);

// Sum of one aligned sub-tree, or of a whole row: columns [0, logits.size()) are absolute columns `begin` onward,
// padded with zeros. Columns at or beyond vocab_size are zero.
Node sum(std::span<const std::uint32_t> logits, std::int64_t begin, const RowOptions& options);

// A whole row with its target ids. `logits` are binary32 bits of V columns. Without any id the row is read all the
// same.
RowAnswer score(std::span<const std::uint32_t> logits, std::span<const std::int64_t> target_ids,
                const RowOptions& options);

// The gradient row in binary32 bits before the last rounding. NaNs are 0x7fc00000, those of a NaN or infinite
// grad_logp too, whose payload the contract leaves open.
std::vector<std::uint32_t> gradient(std::span<const std::uint32_t> logits, std::int64_t target_id, float grad_logp,
                                    const RowOptions& options);

// Nodes of the shard [begin, end) of a row of full_vocab columns, in column order; `logits` are the shard's columns.
// The last one holds the padding up to the power of two; an empty shard has no nodes.
std::vector<Node> shard_nodes(std::span<const std::uint32_t> logits, std::int64_t begin, std::int64_t end,
                              std::int64_t full_vocab, const RowOptions& options);

// The two halves of a sub-tree.
Node add(const Node& left, const Node& right);

struct ShardList {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::vector<Node> nodes; // of shard_nodes
};
// The root of a row from the lists of all its shards, in column order; the last one ends at full_vocab.
Node join_shards(std::span<const ShardList> shards, std::int64_t full_vocab);

} // namespace bilogp::reference
