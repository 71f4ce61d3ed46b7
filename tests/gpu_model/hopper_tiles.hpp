// Tiles of the Hopper ring plans, summed by a warp of the host model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/reference/canon_reference.hpp"

namespace gpu_model {

struct Tile {
  std::vector<std::uint32_t> patterns; // stored bits; what lies behind `live` of them is not the row's any more
  std::int64_t live = 0;
  float temperature = 1;
};

struct TileSum {
  std::uint32_t m = 0; // bits of a normalised node
  std::int32_t E = 0;
  int way = 0;
};

// Columns of a tile.
std::int64_t tile_columns(bilogp::reference::Storage storage);
constexpr int tile_ways = 6;

// One after the other, by a warp that remembers what served. With a table all tiles have the first one's temperature.
// "" or what went wrong.
std::string sum_tiles(bilogp::reference::Storage storage, const std::vector<Tile>& tiles, bool with_table,
                      std::uint64_t seed, std::vector<TileSum>& sums);

} // namespace gpu_model
