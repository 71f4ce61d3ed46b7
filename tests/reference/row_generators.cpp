#include "tests/reference/row_generators.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/reference/canon_arithmetic.hpp"
#include "tests/reference/chained_ties.hpp"

namespace bilogp::reference {
namespace {

using detail::as_bits;
using detail::as_float;
using detail::minus_infinity;

constexpr double log2e = 0x1.715476p+0;

double largest_finite_of(Storage storage) {
  if (storage == Storage::float16) return 65504.0;
  if (storage == Storage::bfloat16) return 0x1.fep127;
  return static_cast<double>(std::numeric_limits<float>::max());
}

// Fills one row; each member is one kind of column values or one way to spoil a row.
class RowMaker {
public:
  RowMaker(std::int64_t columns, Storage storage, std::uint64_t seed)
      : storage_(storage), random_(seed), row_(static_cast<std::size_t>(columns)) {}

  std::vector<std::uint32_t> make(RowKind kind) {
    if (!row_.empty()) fill(kind);
    return std::move(row_);
  }

private:
  void fill(RowKind kind);

  template<typename Value> void each(Value value) {
    for (std::uint32_t& bits : row_) bits = representable(storage_, value());
  }
  double normal(double sigma) { return sigma * normal_(random_); }
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  double sign() { return one_in(2) ? -1.0 : 1.0; }
  std::size_t anywhere() { return below(row_.size()); }

  void normals(double sigma) {
    each([&] { return normal(sigma); });
  }
  void offset(double low, double high) {
    const double center = uniform(low, high);
    each([&] { return center + normal(2); });
  }
  void masked_third() {
    normals(3);
    for (std::uint32_t& bits : row_)
      if (one_in(3)) bits = minus_infinity;
  }
  // One finite column among at most 64 around a third of the row: 0, 1 or 2.
  void only_in(std::size_t third) {
    const std::size_t tile = std::min<std::size_t>(row_.size(), 64);
    const std::size_t begin = third * (row_.size() - tile) / 2;
    only_at(begin + below(tile));
  }
  void only_at(std::size_t column) {
    std::fill(row_.begin(), row_.end(), minus_infinity);
    row_[column] = representable(storage_, normal(10));
  }
  void not_a_number() {
    normals(3);
    const auto payload = static_cast<std::uint32_t>(1 + below(127)) << 16; // what bfloat16 can carry
    std::uint32_t bits = (one_in(2) ? 0x80000000U : 0U) | 0x7f800000U | payload;
    if (storage_ == Storage::float32) bits |= static_cast<std::uint32_t>(below(65536));
    row_[anywhere()] = bits;
  }
  void plus_infinity() {
    normals(3);
    row_[anywhere()] = detail::plus_infinity;
  }
  void beyond_bound() {
    const double bound = std::min(0x1p29, largest_finite_of(storage_));
    each([&] { return one_in(3) ? normal(3) : sign() * bound * uniform(0.5, 3); });
  }
  void largest_finite() {
    const double largest = largest_finite_of(storage_);
    each([&] { return one_in(3) ? 0.0 : sign() * largest; });
  }
  void one_far_below() {
    normals(2);
    row_[anywhere()] = representable(storage_, -65504.0);
  }
  void tie_prone() {
    // Beside the nearest representable value its neighbours, which fall to the other side of the tie.
    const double range = one_in(2) ? 8 : 100;
    each([&] {
      const double x = (std::floor(uniform(-range, range)) + 0.5) / log2e;
      return x * (1.0 + static_cast<double>(static_cast<int>(below(3)) - 1) * step());
    });
  }
  // About one unit in the last place, relative.
  double step() {
    if (storage_ == Storage::float16) return 0x1p-10;
    return storage_ == Storage::bfloat16 ? 0x1p-7 : 0x1p-23;
  }
  void two_clusters() {
    const double low = uniform(-60, 0);
    const double high = low + uniform(40, 200);
    const std::uint64_t share = std::uint64_t{1} << (1 + below(8));
    each([&] { return (one_in(share) ? high : low) + normal(1); });
  }
  void ramp(double direction) {
    const auto width = static_cast<double>(row_.size());
    const double steep = direction * uniform(100, 700) / std::min(width, 256.0);
    double x = -steep * width / 2;
    each([&] { return x += steep; });
  }
  void denormal() {
    const double smallest =
        storage_ == Storage::float16 ? 0x1p-24 : (storage_ == Storage::bfloat16 ? 0x1p-133 : 0x1p-149);
    const double steps = storage_ == Storage::float16 ? 1023 : (storage_ == Storage::bfloat16 ? 127 : 8388607);
    each([&] { return sign() * smallest * (one_in(4) ? 0.0 : std::floor(uniform(1, steps + 1))); });
  }
  void three_bits() {
    each([&] { return static_cast<double>(as_float(as_bits(static_cast<float>(normal(4))) & 0xffe00000U)); });
  }

  Storage storage_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::vector<std::uint32_t> row_;
};

void RowMaker::fill(RowKind kind) {
  switch (kind) {
  case RowKind::normal_half:
    return normals(0.5);
  case RowKind::normal_2:
    return normals(2);
  case RowKind::normal_5:
    return normals(5);
  case RowKind::normal_60:
    return normals(60);
  case RowKind::offset_high:
    return offset(200, 300);
  case RowKind::offset_low:
    return offset(-300, -200);
  case RowKind::masked_third:
    return masked_third();
  case RowKind::masked_all_but_one:
    return only_at(anywhere());
  case RowKind::masked_all:
    return std::fill(row_.begin(), row_.end(), minus_infinity);
  case RowKind::only_first_tile:
    return only_in(0);
  case RowKind::only_middle_tile:
    return only_in(1);
  case RowKind::only_last_tile:
    return only_in(2);
  case RowKind::nan_somewhere:
    return not_a_number();
  case RowKind::plus_inf_somewhere:
    return plus_infinity();
  case RowKind::saturated:
    return each([&] { return sign() * uniform(80, one_in(2) ? 130 : 2000); });
  case RowKind::beyond_bound:
    return beyond_bound();
  case RowKind::largest_finite:
    return largest_finite();
  case RowKind::one_far_below:
    return one_far_below();
  case RowKind::chained_ties_masked:
  case RowKind::chained_ties_filled: {
    const bool filled = kind == RowKind::chained_ties_filled;
    row_ = make_chained_ties(static_cast<std::int64_t>(row_.size()), storage_, filled, random_()).logits;
    return;
  }
  case RowKind::tie_prone:
    return tie_prone();
  case RowKind::gap_range:
    return each([&] { return one_in(4) ? 0.0 : uniform(-130, -60); });
  case RowKind::two_clusters:
    return two_clusters();
  case RowKind::ramp_up:
    return ramp(1);
  case RowKind::ramp_down:
    return ramp(-1);
  case RowKind::denormal:
    return denormal();
  case RowKind::three_bit_mantissas:
    return three_bits();
  case RowKind::all_equal:
    return std::fill(row_.begin(), row_.end(), representable(storage_, normal(20)));
  }
}

} // namespace

std::uint32_t representable(Storage storage, double value) {
  const double largest = largest_finite_of(storage);
  const auto nearest = static_cast<float>(std::clamp(value, -largest, largest));
  const std::uint32_t stored = narrow(storage, as_bits(nearest));
  if (storage == Storage::float32) return stored;
  const auto element = static_cast<std::uint16_t>(stored);
  return widen(storage, &element);
}

std::vector<std::uint32_t> make_row(RowKind kind, std::int64_t columns, Storage storage, std::uint64_t seed) {
  const detail::DefaultEnvironment environment;
  return RowMaker(columns, storage, seed).make(kind);
}

} // namespace bilogp::reference
