// What a score looks like without the contract: float32 exp, log and sums in the order that code happens to add in.
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <span>

namespace bilogp::score {

// logits[target] - logsumexp(logits), with `partial_sums` accumulators, column j in the (j mod partial_sums)-th, joined
// left to right: 1 is a simple loop, 8 and 16 are what vector code of that many lanes does.
float plain_logp(std::span<const float> logits, std::int64_t target, int partial_sums);

} // namespace bilogp::score
