// Names of the kinds of rows, and what goes with a row: target ids, its 16-bit form.
#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "tests/reference/canon_arithmetic.hpp"
#include "tests/reference/row_generators.hpp"

namespace bilogp::reference {
namespace {

using detail::as_float;
using detail::minus_infinity;

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
