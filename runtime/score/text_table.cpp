#include "runtime/score/text_table.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace bilogp::score {

TextTable::TextTable(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    left_.push_back(heading.starts_with('<'));
    if (left_.back()) heading.erase(0, 1);
  }
  lines_.push_back(std::move(headings));
}

void TextTable::add(std::vector<std::string> cells) {
  cells.resize(left_.size());
  lines_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::string out;
  std::vector<std::size_t> widths(left_.size(), 0);
  for (const auto& line : lines_)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  for (const auto& line : lines_) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i)
      row += left_[i] ? fmt::format("  {:<{}}", line[i], widths[i]) : fmt::format("  {:>{}}", line[i], widths[i]);
    row.erase(row.find_last_not_of(' ') + 1);
    if (!row.empty()) out += row + "\n";
  }
  return out;
}

std::string grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  const auto first = static_cast<std::ptrdiff_t>(number < 0 ? 1 : 0);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::string counted(std::int64_t number, std::string_view word) {
  return fmt::format("{} {}{}", grouped(number), word, number == 1 ? "" : "s");
}

std::string duration_text(double seconds) {
  if (seconds < 0.001) return fmt::format("{:.1f} us", 1e6 * seconds);
  return seconds < 0.1 ? fmt::format("{:.{}f} ms", 1000 * seconds, seconds < 0.01 ? 2 : 1)
                       : fmt::format("{:.2f} s", seconds);
}

std::string significant(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.6g}", value);
}

} // namespace bilogp::score
