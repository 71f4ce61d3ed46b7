#include "runtime/score/progress.hpp"

#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/score/standard_streams.hpp"

namespace bilogp::score {

ProgressBar::ProgressBar(std::int64_t total, std::string_view unit)
    : total_(total), unit_(unit), terminal_(::isatty(STDERR_FILENO) == 1), start_(Clock::now()),
      next_(start_ + std::chrono::milliseconds(500)) {}

ProgressBar::~ProgressBar() {
  if (drawn_) print_err("\r\x1b[K");
}

void ProgressBar::show(std::int64_t done) {
  const auto now = Clock::now();
  if (!terminal_ || total_ <= 0 || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  drawn_ = true;
  constexpr std::int64_t width = 40;
  const double part = static_cast<double>(done) / static_cast<double>(total_);
  const auto filled = static_cast<std::size_t>(part * width);
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left = done > 0 ? elapsed * (1 / part - 1) : 0;
  print_err(fmt::format("\r\x1b[K[{}{}] {:3.0f} %  {} of {} {}  {:.0f} s left", std::string(filled, '#'),
                        std::string(width - filled, '.'), 100 * part, done, total_, unit_, left));
}

} // namespace bilogp::score
