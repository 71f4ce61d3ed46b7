// The ways in which the Hopper ring plans sum a tile: each against the slow reference's tree, one tile after another of
// all kinds, whose columns lie on both sides of every window's ends.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/gpu_model/hopper_tiles.hpp"
#include "tests/reference/canon_arithmetic.hpp"
#include "tests/reference/chained_ties.hpp"
#include "tests/reference/row_generators.hpp"

namespace gpu_model {

using TileSummer = std::string (*)(const std::vector<Tile>&, bool, std::uint64_t, std::vector<TileSum>&);
std::string sum_tiles_Float32(const std::vector<Tile>&, bool, std::uint64_t, std::vector<TileSum>&);
std::string sum_tiles_Float16(const std::vector<Tile>&, bool, std::uint64_t, std::vector<TileSum>&);
std::string sum_tiles_Bfloat16(const std::vector<Tile>&, bool, std::uint64_t, std::vector<TileSum>&);

std::int64_t tile_columns(bilogp::reference::Storage storage) {
  return storage == bilogp::reference::Storage::float32 ? 1024 : 2048;
}

std::string sum_tiles(bilogp::reference::Storage storage, const std::vector<Tile>& tiles, bool with_table,
                      std::uint64_t seed, std::vector<TileSum>& sums) {
  constexpr TileSummer summers[] = {sum_tiles_Float32, sum_tiles_Float16, sum_tiles_Bfloat16};
  return summers[static_cast<std::size_t>(storage)](tiles, with_table, seed, sums);
}

} // namespace gpu_model

namespace {

namespace reference = bilogp::reference;
using gpu_model::Tile;
using reference::Storage;

constexpr double infinity = std::numeric_limits<double>::infinity();

// In powers of two: most columns about `center`, some masked, a few odd ones.
struct Kind {
  double center = 0, deviation = 5, mask = -infinity, masked_share = 1.0 / 30, odd = 0, odd_share = 0;
};

class TileMaker {
public:
  TileMaker(Storage storage, std::uint64_t seed) : storage_(storage), random_(seed) {
    for (std::uint64_t i = 0; i < 6; ++i)
      chains_.push_back(reference::make_chained_ties(
          columns(), storage, i % 2 == 1, i, {.depth = i < 2 ? 130 : 212, .decisive_exponent = i < 2 ? -66 : -135}));
  }

  // Runs of tiles of one kind each.
  std::vector<Tile> tiles(int runs, bool one_temperature) {
    std::vector<Tile> made;
    float temperature = a_temperature();
    for (int run = 0; run < runs; ++run) {
      if (!one_temperature) temperature = a_temperature();
      const Kind kind = a_kind(1 / reference::detail::make_scale(temperature).c);
      const bool chained = temperature == 1 && random_() % 8 == 0;
      for (std::uint64_t i = random_() % 24 + 1; i > 0; --i)
        made.push_back(chained && i % 2 == 0 ? chain_or_above(kind) : tile_of(kind, temperature));
    }
    return made;
  }

private:
  [[nodiscard]] std::int64_t columns() const { return gpu_model::tile_columns(storage_); }
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }
  float a_temperature() {
    constexpr float values[] = {1, 1, 1, 1, 0.7F, 1.6F, 2, 0.3F, 0.01F, 100, 3000, 0x1p-12F, 0x1p20F, 0x1p-20F};
    return values[random_() % std::size(values)];
  }

  Kind a_kind(double unit) {
    const double masks[] = {-infinity, -infinity, -65504 / unit, -10000, -1000, -130, -120};
    const double shares[] = {0, 1.0 / 30, 1.0 / 30, 0.97};
    Kind k;
    k.mask = masks[random_() % std::size(masks)];
    k.masked_share = shares[random_() % std::size(shares)];
    switch (random_() % 11) {
    case 0: // the lower ends of the plain window and of what is real in it, then its upper end
      return k.odd = uniform(-122, -113), k.odd_share = 1.0 / 500, k;
    case 1:
      return k.odd = uniform(-80, -73), k.odd_share = 1.0 / 500, k;
    case 2:
      return k.odd = uniform(113, 125), k.odd_share = 1.0 / 900, k;
    case 3: // offsets, and something at the ends of their windows
      return k.center = uniform(-600, 600), k.masked_share = 0, k;
    case 4:
      return k.center = uniform(-600, 600), k.odd = k.center - uniform(100, 260), k.odd_share = 1.0 / 300, k;
    case 5:
      return k.center = uniform(-200, 200), k.odd = k.center + uniform(20, 60), k.odd_share = 1.0 / 3000, k;
    case 6: // wide ones
      return k.deviation = uniform(20, 120), k;
    case 7:
      return k.center = uniform(-12500, 12500), k.deviation = uniform(1, 300), k;
    case 8:
      return k.deviation = uniform(100, 1e6), k;
    case 9:
      return k.masked_share = 1, k;
    default:
      return k;
    }
  }

  std::uint32_t stored(double x) {
    const std::uint32_t bits = reference::representable(storage_, x);
    if (storage_ == Storage::float32) return bits;
    return reference::to_16_bits(storage_, std::array{bits}).front();
  }

  Tile tile_of(const Kind& k, float temperature) {
    const double unit = 1 / static_cast<double>(reference::detail::make_scale(temperature).c);
    const double drift = 8 * normal_(random_); // of a tile's maximum
    Tile tile;
    tile.temperature = temperature;
    for (std::int64_t j = 0; j < columns(); ++j) {
      const double where = uniform(0, 1);
      const double exponent = where < k.odd_share                    ? k.odd + 0.3 * normal_(random_)
                              : where < k.odd_share + k.masked_share ? k.mask
                              : k.center == 0                        ? k.deviation * normal_(random_)
                                              : k.center + drift + k.deviation * normal_(random_);
      tile.patterns.push_back(stored(exponent * unit));
    }
    const auto anywhere = [&]() -> std::uint32_t& { return tile.patterns[random_() % tile.patterns.size()]; };
    if (random_() % 100 == 0) anywhere() = stored(random_() % 2 == 0 ? infinity : std::nan(""));
    if (random_() % 50 == 0) anywhere() = stored(uniform(-3e38, 3e38));
    tile.live = columns();
    if (random_() % 6 == 0)
      tile.live = 1 + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(columns()));
    for (std::int64_t j = tile.live; j < columns(); ++j)
      tile.patterns[static_cast<std::size_t>(j)] = static_cast<std::uint32_t>(random_());
    return tile;
  }

  // A chain, or a tile whose window reaches higher, so that the chain's first term lies below it.
  Tile chain_or_above(const Kind& kind) {
    const auto& chain = chains_[random_() % chains_.size()];
    if (random_() % 3 == 0)
      return tile_of({.center = chain.depth - 100.0, .mask = -60, .masked_share = 0.05, .odd = -140, .odd_share = 0.05},
                     1);
    Tile tile = tile_of(kind, 1);
    tile.live = columns();
    for (std::size_t j = 0; j < chain.logits.size(); ++j)
      tile.patterns[j] = storage_ == Storage::float32
                             ? chain.logits[j]
                             : reference::to_16_bits(storage_, std::array{chain.logits[j]}).front();
    return tile;
  }

  Storage storage_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::vector<reference::ChainedTies> chains_;
};

// What the tile's node is by the reference.
reference::Node right_sum(const Tile& tile, Storage storage) {
  std::vector<std::uint32_t> logits;
  for (std::int64_t j = 0; j < tile.live; ++j) {
    const std::uint32_t pattern = tile.patterns[static_cast<std::size_t>(j)];
    const auto half = static_cast<std::uint16_t>(pattern);
    logits.push_back(storage == Storage::float32 ? pattern : reference::widen(storage, &half));
  }
  reference::RowOptions options;
  options.temperature = tile.temperature;
  return reference::detail::to_node(reference::detail::sum_row(logits, 0, options));
}

void check_tiles(Storage storage, bool with_table, std::uint64_t seed) {
  const reference::detail::DefaultEnvironment environment;
  TileMaker maker(storage, seed);
  std::array<int, gpu_model::tile_ways> served{};
  for (int launch = 0; launch < 8; ++launch) {
    const std::vector<Tile> tiles = maker.tiles(14, with_table);
    std::vector<gpu_model::TileSum> sums;
    REQUIRE(gpu_model::sum_tiles(storage, tiles, with_table, seed, sums) == "");
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      CAPTURE(i);
      CAPTURE(sums[i].way);
      CAPTURE(tiles[i].temperature);
      CAPTURE(tiles[i].live);
      const reference::Node right = right_sum(tiles[i], storage);
      const bool is_nan = std::isnan(std::bit_cast<float>(right.m_bits));
      if (is_nan) {
        CHECK(std::isnan(std::bit_cast<float>(sums[i].m)));
      } else {
        CHECK(sums[i].m == right.m_bits);
        if (right.m_bits != 0) CHECK(sums[i].E == right.E);
      }
      ++served[static_cast<std::size_t>(sums[i].way)];
    }
  }
  for (const int count : served) CHECK(count > 0); // no way is left out
}

} // namespace

TEST_SUITE_BEGIN("hopper tiles");

TEST_CASE("tiles of all kinds, one after another, by every way there is") {
  for (const Storage storage : {Storage::float32, Storage::float16, Storage::bfloat16}) check_tiles(storage, false, 61);
  check_tiles(Storage::bfloat16, true, 62);
}

TEST_SUITE_END();
