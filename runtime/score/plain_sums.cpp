#include "runtime/score/plain_sums.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace bilogp::score {

float plain_logp(std::span<const float> logits, std::int64_t target, int partial_sums) {
  const float maximum = *std::max_element(logits.begin(), logits.end());
  std::vector<float> sums(static_cast<std::size_t>(partial_sums), 0.0F);
  for (std::size_t j = 0; j < logits.size(); ++j) sums[j % sums.size()] += std::exp(logits[j] - maximum);
  float sum = 0.0F;
  for (const float part : sums) sum += part;
  return (logits[static_cast<std::size_t>(target)] - maximum) - std::log(sum);
}

} // namespace bilogp::score
