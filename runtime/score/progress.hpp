// A progress bar on a terminal, for what takes long.
//
// Thread-safety: none; one owner.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace bilogp::score {

// Draws one line on stderr, from half a second on and ten times a second at most; nothing where stderr is no terminal.
// The line is wiped when the bar goes away. A terminal that is gone does no harm.
class ProgressBar {
public:
  explicit ProgressBar(std::int64_t total, std::string_view unit = "rows");
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();
  void show(std::int64_t done);

private:
  using Clock = std::chrono::steady_clock;
  std::int64_t total_;
  std::string_view unit_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_;
  Clock::time_point next_;
};

} // namespace bilogp::score
