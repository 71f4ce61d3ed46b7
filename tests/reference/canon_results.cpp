// What a row answers once its sum is known: logp, lse and the row state.
#include <algorithm>
#include <cmath>

#include "tests/reference/canon_arithmetic.hpp"

namespace bilogp::reference::detail {
namespace {

constexpr double inverse_log2e = 1.0 / 0x1.715476p+0; // iL

double significand_of(const Term& root) {
  return static_cast<double>(as_float(to_node(root).m_bits));
}

std::uint32_t lse_of(const Term& root) {
  if (root.is_poison()) return quiet_nan;
  if (root.is_zero()) return minus_infinity;
  const double exponent = root.exponent;
  return as_bits(static_cast<float>((exponent + log2_canon(significand_of(root))) * inverse_log2e));
}

// Lines 3 to 6; the target lies inside the vocabulary.
std::uint32_t logp_of(std::uint32_t target_logit, const Term& root, const Scale& scale) {
  if (root.is_poison() || root.is_zero()) return quiet_nan;
  const Leaf target = make_leaf(target_logit, scale);
  if (target.kind == LeafKind::zero) return minus_infinity;
  const double m = significand_of(root);
  const double exponent = root.exponent;
  double d = 0;
  const float x = as_float(target_logit);
  if (x < -scale.bound && std::int64_t{root.exponent} > std::int64_t{target.n} + 40) {
    d = static_cast<double>(x) * static_cast<double>(scale.c);
    d = d - exponent;
    d = d - log2_canon(m);
  } else {
    d = static_cast<double>(std::int64_t{target.n} - root.exponent);
    d = d + log2_canon(static_cast<double>(target.p) / m);
  }
  return as_bits(static_cast<float>(d * inverse_log2e));
}

} // namespace

double log2_canon(double z) {
  double e = 0;
  if (z > 0x1.6a09e667f3bcdp+0) {
    z = z * 0.5;
    e = 1;
  } else if (z < 0x1.6a09e667f3bcdp-1) {
    z = z * 2.0;
    e = -1;
  }
  const double u = (z - 1.0) / (z + 1.0);
  const double w = u * u;
  double q = 1.0 / 21.0;
  for (int k = 19; k >= 1; k -= 2) {
    q = q * w;
    q = q + 1.0 / k;
  }
  double h = 0x1.71547652b82fep+1 * u;
  h = h * q;
  return e + h;
}

RowAnswer score_row(std::span<const std::uint32_t> logits, std::span<const std::int64_t> target_ids,
                    const RowOptions& options) {
  RowAnswer answer;
  answer.logp.assign(target_ids.size(), 0);
  const auto ignored = [&](std::int64_t id) { return id == options.ignore_index; };
  if (!target_ids.empty() && std::all_of(target_ids.begin(), target_ids.end(), ignored)) return answer;

  const Scale scale = make_scale(options.temperature);
  const Term root = sum_row(logits, 0, options);
  answer.lse = lse_of(root);
  answer.state = to_node(root);
  for (std::size_t k = 0; k < target_ids.size(); ++k) {
    const std::int64_t id = target_ids[k];
    if (ignored(id)) continue;
    const bool inside = id >= 0 && id < used_columns(logits, options);
    answer.logp[k] = inside ? logp_of(logits[static_cast<std::size_t>(id)], root, scale) : quiet_nan;
  }
  return answer;
}

} // namespace bilogp::reference::detail
