// Rows in which a term about 2^-130 below the sum decides the sum's last bit.
//
// Such a row is a chain: each partial sum lies exactly on, or one last place beside, the point where the next larger
// addend's rounding turns, and the side is decided by the partial sum before it. A kernel that drops terms far below a
// maximum, of a tile or of the row, gets another sum.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/reference/canon_reference.hpp"

namespace bilogp::reference {

struct ChainedTies {
  std::vector<std::uint32_t> logits;
  std::int64_t decisive_column = 0; // with -inf in its place the sum is another
  std::int32_t depth = 0;           // exponent of the sum minus exponent of the decisive term
};

// The usual chain lies symmetrically around 1.
struct ChainShape {
  int depth = 130;
  int decisive_exponent = -66;
};

// From 512 columns on the usual depth is reached in every storage type; below it is what fits (65 or more from 32
// columns on). Columns outside the chain are -inf, or with `filled` finite and too small to matter. At most 2^24
// columns.
ChainedTies make_chained_ties(std::int64_t columns, Storage storage, bool filled, std::uint64_t seed,
                              const ChainShape& shape = {});

} // namespace bilogp::reference
