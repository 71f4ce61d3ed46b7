// The pieces canon_reference is made of, for its own files, the row generators and test_canon.
//
// Everything here expects the default floating environment: the public functions set it (DefaultEnvironment).
#pragma once

#include <bit>
#include <cfenv>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/reference/canon_reference.hpp"

namespace bilogp::reference::detail {

constexpr std::uint32_t quiet_nan = 0x7fc00000;
constexpr std::uint32_t plus_infinity = 0x7f800000;
constexpr std::uint32_t minus_infinity = 0xff800000;

inline float as_float(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}
inline std::uint32_t as_bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// Round to nearest, subnormals kept, no traps, for as long as it lives; the caller's environment comes back after.
class DefaultEnvironment {
public:
  DefaultEnvironment() {
    std::fegetenv(&callers_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultEnvironment() { std::fesetenv(&callers_); }
  DefaultEnvironment(const DefaultEnvironment&) = delete;
  DefaultEnvironment& operator=(const DefaultEnvironment&) = delete;

private:
  std::fenv_t callers_{};
};

// What a temperature turns into.
struct Scale {
  float c = 0;                   // logits are multiplied by this; 2 is the base
  float inverse_temperature = 1; // iT
  float bound = 0;               // B
  bool unit = true;              // T = 1
  bool valid = true;             // 2^-20 <= T <= 2^20
};
Scale make_scale(float temperature);

enum class LeafKind : std::uint8_t { zero, poison, value };

struct Leaf { // p * 2^n
  LeafKind kind = LeafKind::zero;
  float p = 0;
  float f = 0;
  std::int32_t n = 0;
};
// Lines 2 to 4 of the contract's leaf: the column is known to be inside the vocabulary.
Leaf make_leaf(std::uint32_t logit, const Scale& scale);
float leaf_polynomial(float f);

// significand * 2^(exponent - 23), the significand in [2^23, 2^24); zero and poison have marks of their own.
struct Term {
  std::uint32_t significand = 0;
  std::int32_t exponent = INT32_MIN;
  [[nodiscard]] bool is_zero() const { return significand == 0; }
  [[nodiscard]] bool is_poison() const { return significand == UINT32_MAX; }
  friend bool operator==(const Term&, const Term&) = default;
};
constexpr Term poison_term{UINT32_MAX, 0};

Term to_term(const Leaf& leaf);
Term to_term(const Node& node);
Node to_node(const Term& term);

// RN24(a + b).
Term add_terms(const Term& a, const Term& b);
// The tree over any number of terms, padded with zeros; consumes its argument.
Term tree_sum(std::vector<Term> terms);

// The contract's log2, z in [0.35, 2).
double log2_canon(double z);

Term sum_row(std::span<const std::uint32_t> logits, std::int64_t begin, const RowOptions& options);
RowAnswer score_row(std::span<const std::uint32_t> logits, std::span<const std::int64_t> target_ids,
                    const RowOptions& options);
std::vector<std::uint32_t> gradient_row(std::span<const std::uint32_t> logits, std::int64_t target_id, float grad_logp,
                                        const RowOptions& options);
std::vector<Node> shard_row(std::span<const std::uint32_t> logits, std::int64_t begin, std::int64_t end,
                            std::int64_t full_vocab, const RowOptions& options);

inline std::int64_t used_columns(std::span<const std::uint32_t> logits, const RowOptions& options) {
  return options.vocab_size < 0 ? static_cast<std::int64_t>(logits.size()) : options.vocab_size;
}

} // namespace bilogp::reference::detail
