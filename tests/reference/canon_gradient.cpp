// The gradient of logp, before the last rounding to the logits' dtype.
#include <cmath>

#include "tests/reference/canon_arithmetic.hpp"

namespace bilogp::reference::detail {
namespace {

bool is_near(const Leaf& leaf, const Term& root) {
  return leaf.kind == LeafKind::value && std::int64_t{leaf.n} - root.exponent >= -99;
}

// p * 2^(n - E) of a leaf that is not too far below the sum, else 0. Exact: the exponent is in [-99, 1].
float share(const Leaf& leaf, const Term& root) {
  return is_near(leaf, root) ? std::ldexp(leaf.p, leaf.n - root.exponent) : 0.0F;
}

// The payload of a NaN that a NaN or infinite upstream gradient makes is open; this one is the same on every machine.
std::uint32_t gradient_bits(float value) {
  return std::isnan(value) ? quiet_nan : as_bits(value);
}

std::uint32_t target_gradient(const Leaf& leaf, const Term& root, float m, float g, const Scale& scale) {
  const double part = static_cast<double>(share(leaf, root)) / static_cast<double>(m);
  double grad = static_cast<double>(g) * (1.0 - part);
  if (!scale.unit) grad = grad * static_cast<double>(scale.inverse_temperature);
  return gradient_bits(static_cast<float>(grad));
}

} // namespace

std::vector<std::uint32_t> gradient_row(std::span<const std::uint32_t> logits, std::int64_t target_id, float grad_logp,
                                        const RowOptions& options) {
  std::vector<std::uint32_t> grad(logits.size(), 0);
  const std::int64_t used = used_columns(logits, options);
  if (target_id == options.ignore_index || target_id < 0 || target_id >= used) return grad;
  const Term root = sum_row(logits, 0, options);
  if (root.is_poison() || root.is_zero()) {
    grad.assign(logits.size(), quiet_nan);
    return grad;
  }
  const Scale scale = make_scale(options.temperature);
  const float m = as_float(to_node(root).m_bits);
  const float reciprocal = 1.0F / m;
  float gi = -(grad_logp * reciprocal);
  if (!scale.unit) gi = gi * scale.inverse_temperature;
  for (std::int64_t j = 0; j < used; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const Leaf leaf = make_leaf(logits[at], scale);
    if (j == target_id)
      grad[at] = target_gradient(leaf, root, m, grad_logp, scale);
    else if (is_near(leaf, root))
      grad[at] = gradient_bits(share(leaf, root) * gi);
  }
  return grad;
}

} // namespace bilogp::reference::detail
