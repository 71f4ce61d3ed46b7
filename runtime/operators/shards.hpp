// Shards of a vocabulary: their bounds and their nodes.
#pragma once

#include <cstdint>

#include "bilogp/tensor.hpp"

namespace bilogp {

// Throws Error(invalid_argument) unless 0 <= begin < end <= full_vocab and 1 <= full_vocab <= 2^31.
void check_shard(std::int64_t begin, std::int64_t end, std::int64_t full_vocab);

// int32 [..., count, 2] with the rows of `rows`, and its two words side by side.
void check_nodes(const TensorView& nodes, const TensorView& rows, int leading_rank, std::int64_t count);

} // namespace bilogp
