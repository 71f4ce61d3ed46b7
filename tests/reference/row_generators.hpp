// Seeded rows of logits for tests: ordinary ones, and every kind that has broken a kernel or could.
//
// A row is binary32 bits that the given storage type holds exactly, so one row serves all three types. The same kind,
// width, storage and seed always give the same row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tests/reference/canon_reference.hpp"

namespace bilogp::reference {

enum class RowKind : std::uint8_t {
  normal_half,         // N(0, 0.5)
  normal_2,            // N(0, 2)
  normal_5,            // N(0, 5)
  normal_60,           // N(0, 60)
  offset_high,         // N(c, 2), c in [200, 300]
  offset_low,          // N(c, 2), c in [-300, -200]
  masked_third,        // N(0, 3), a third of the columns -inf
  masked_all_but_one,  // one finite column anywhere
  masked_all,          // every column -inf
  only_first_tile,     // one finite column among the first 64
  only_middle_tile,    // in the middle
  only_last_tile,      // among the last 64
  nan_somewhere,       // N(0, 3), one NaN of any sign and payload
  plus_inf_somewhere,  // N(0, 3), one +inf
  saturated,           // |x| in [80, 2000]
  beyond_bound,        // |x| around B = 2^29 and beyond (float16: up to 65504)
  largest_finite,      // the largest finite value of either sign, and zeros
  one_far_below,       // N(0, 2) with -65504 somewhere
  chained_ties_masked, // a term about 2^-130 below the sum decides its last bit, other columns -inf (chained_ties)
  chained_ties_filled, // the same, other columns finite and far below
  tie_prone,           // x * log2(e) next to an integer and a half
  gap_range,           // zeros, and values in [-130, -60]
  two_clusters,        // two groups of columns 40 to 200 apart
  ramp_up,             // a steep line
  ramp_down,           // the other way
  denormal,            // subnormals of the storage type, and zeros of both signs
  three_bit_mantissas, // N(0, 4) with three significant bits: many equal sums and ties
  all_equal,           // one value everywhere
};

std::span<const RowKind> all_kinds();
std::string_view to_string(RowKind kind);
std::string_view to_string(Storage storage);

// False where the storage type cannot hold what the kind is about (beyond_bound in float16).
bool holds(RowKind kind, Storage storage);

std::vector<std::uint32_t> make_row(RowKind kind, std::int64_t columns, Storage storage, std::uint64_t seed);

// Target ids for a row: ordinary ones, its maximum, masked columns, ignored ones and, with `any_id`, ids outside
// [0, vocab_size). All fit int32.
std::vector<std::int64_t> make_target_ids(std::span<const std::uint32_t> row, std::int64_t count,
                                          const RowOptions& options, bool any_id, std::uint64_t seed);

// The representable value nearest to `value`, as binary32 bits; finite values stay finite.
std::uint32_t representable(Storage storage, double value);

// A row in float16 or bfloat16, rounded where it must be; NaNs keep their sign and payload.
std::vector<std::uint16_t> to_16_bits(Storage storage, std::span<const std::uint32_t> row);

} // namespace bilogp::reference
