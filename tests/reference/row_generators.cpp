#include "tests/reference/row_generators.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "tests/reference/canon_arithmetic.hpp"
#include "tests/reference/chained_ties.hpp"

namespace bilogp::reference {
namespace {

using detail::as_bits;
using detail::as_float;
using detail::minus_infinity;

constexpr double log2e = 0x1.715476p+0;

constexpr std::array<std::pair<RowKind, std::string_view>, 28> kind_names{{
    {RowKind::normal_half, "normal_half"},
    {RowKind::normal_2, "normal_2"},
    {RowKind::normal_5, "normal_5"},
    {RowKind::normal_60, "normal_60"},
    {RowKind::offset_high, "offset_high"},
    {RowKind::offset_low, "offset_low"},
    {RowKind::masked_third, "masked_third"},
    {RowKind::masked_all_but_one, "masked_all_but_one"},
    {RowKind::masked_all, "masked_all"},
    {RowKind::only_first_tile, "only_first_tile"},
    {RowKind::only_middle_tile, "only_middle_tile"},
    {RowKind::only_last_tile, "only_last_tile"},
    {RowKind::nan_somewhere, "nan_somewhere"},
    {RowKind::plus_inf_somewhere, "plus_inf_somewhere"},
    {RowKind::saturated, "saturated"},
    {RowKind::beyond_bound, "beyond_bound"},
    {RowKind::largest_finite, "largest_finite"},
    {RowKind::one_far_below, "one_far_below"},
    {RowKind::chained_ties_masked, "chained_ties_masked"},
    {RowKind::chained_ties_filled, "chained_ties_filled"},
    {RowKind::tie_prone, "tie_prone"},
    {RowKind::gap_range, "gap_range"},
    {RowKind::two_clusters, "two_clusters"},
    {RowKind::ramp_up, "ramp_up"},
    {RowKind::ramp_down, "ramp_down"},
    {RowKind::denormal, "denormal"},
    {RowKind::three_bit_mantissas, "three_bit_mantissas"},
    {RowKind::all_equal, "all_equal"},
}};

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

std::span<const RowKind> all_kinds() {
  static const auto kinds = [] {
    std::array<RowKind, kind_names.size()> list{};
    for (std::size_t i = 0; i < list.size(); ++i) list[i] = kind_names[i].first;
    return list;
  }();
  return kinds;
}

std::string_view to_string(RowKind kind) {
  for (const auto& [known, name] : kind_names)
    if (known == kind) return name;
  return "unknown";
}

std::string_view to_string(Storage storage) {
  if (storage == Storage::float16) return "float16";
  return storage == Storage::bfloat16 ? "bfloat16" : "float32";
}

bool holds(RowKind kind, Storage storage) {
  return kind != RowKind::beyond_bound || storage != Storage::float16;
}

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

std::vector<std::int64_t> make_target_ids(std::span<const std::uint32_t> row, std::int64_t count,
                                          const RowOptions& options, bool any_id, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto used = static_cast<std::size_t>(detail::used_columns(row, options));
  const auto width = static_cast<std::int64_t>(row.size());
  const auto live = row.first(used);
  const auto maximum = std::max_element(live.begin(), live.end(),
                                        [](std::uint32_t a, std::uint32_t b) { return as_float(a) < as_float(b); });
  const std::array<std::int64_t, 7> outside{-1,        -2,       static_cast<std::int64_t>(used), width, width + 1,
                                            INT32_MIN, INT32_MAX};
  std::vector<std::int64_t> ids;
  while (static_cast<std::int64_t>(ids.size()) < count) {
    const std::uint64_t choice = random() % 10;
    auto id = static_cast<std::int64_t>(random() % used);
    if (choice == 0) id = maximum - live.begin();
    if (choice == 1) {
      // The next masked column from a random one on, when there is any.
      const auto masked = std::find(live.begin() + id, live.end(), minus_infinity);
      if (masked != live.end()) id = masked - live.begin();
    }
    if (choice == 2 && any_id) id = outside[random() % outside.size()];
    if (choice == 3) id = options.ignore_index;
    ids.push_back(id);
  }
  return ids;
}

std::vector<std::uint16_t> to_16_bits(Storage storage, std::span<const std::uint32_t> row) {
  std::vector<std::uint16_t> stored;
  stored.reserve(row.size());
  for (const std::uint32_t bits : row) {
    std::uint32_t element = narrow(storage, bits);
    if ((bits & 0x7fffffffU) > detail::plus_infinity) // a kernel must take any NaN, not only the quiet one
      element = storage == Storage::float16 ? (bits >> 16 & 0x8000U) | 0x7c00U | (bits >> 13 & 0x3ffU) : bits >> 16;
    stored.push_back(static_cast<std::uint16_t>(element));
  }
  return stored;
}

} // namespace bilogp::reference
