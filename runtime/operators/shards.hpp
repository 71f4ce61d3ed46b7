// Shards of a vocabulary: their bounds and their nodes.
#pragma once

#include <cstdint>

namespace bilogp {

// Throws Error(invalid_argument) unless 0 <= begin < end <= full_vocab and 1 <= full_vocab <= 2^31.
void check_shard(std::int64_t begin, std::int64_t end, std::int64_t full_vocab);

} // namespace bilogp
