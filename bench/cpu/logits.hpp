// Logits to measure with.
#pragma once

#include <cstddef>

#include "bilogp/bilogp.hpp"

namespace bilogp::bench {

// Logits of a normal distribution, standard deviation 5, repeated from a block that no cache level predicts; masked: a
// quarter of them -inf.
void fill(char* memory, std::size_t bytes, DType dtype, bool is_masked);

} // namespace bilogp::bench
