// Aligned plain-text tables and numbers for people.
//
// Thread-safety: pure functions; a table has one owner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bilogp::score {

class TextTable {
public:
  // A heading that begins with '<' aligns its column to the left, without showing it; others align to the right.
  // Without any heading the line is left out.
  explicit TextTable(std::vector<std::string> headings);
  void add(std::vector<std::string> cells);
  [[nodiscard]] std::string text() const; // lines indented by two spaces

private:
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> lines_;
};

std::string grouped(std::int64_t number); // "49,152"
// "1 row", "49,152 rows": the word gets an s unless there is one of it.
std::string counted(std::int64_t number, std::string_view word);
std::string duration_text(double seconds); // "83.1 us", "2.10 ms", "0.31 s"
std::string significant(double value);     // six significant digits; "-" for NaN

} // namespace bilogp::score
