// fuzz-bits: draws calls at random and compares them with the slow reference for a given time.
#include <chrono>
#include <cstdio>
#include <exception>
#include <random>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tests/cpu/random_case.hpp"

using namespace bilogp::test;

namespace {

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

// Case `seed` alone; what went wrong.
std::string try_case(std::uint64_t seed, std::int64_t& rows) {
  try {
    const RandomCase drawn = draw_case(seed);
    rows += drawn.mix.rows;
    return run_case(drawn);
  } catch (const std::exception& error) {
    return fmt::format("threw: {}", error.what());
  }
}

} // namespace

int main(int argc, char** argv) try {
  CLI::App app("Compares calls drawn at random with the slow reference, bit by bit; exit status 1 at a difference");
  double seconds = 60;
  std::uint64_t seed = std::random_device()();
  bool only_one = false;
  app.add_option("--seconds", seconds, "How long")->check(CLI::NonNegativeNumber);
  app.add_option("--seed", seed, "Of the first case; the next ones count up. Drawn unless given");
  app.add_flag("--once", only_one, "That one case only");
  CLI11_PARSE(app, argc, argv);
  fmt::print("seed {}\n", seed);
  std::fflush(stdout);
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  std::int64_t cases = 0;
  std::int64_t rows = 0;
  do {
    const std::uint64_t current = seed + static_cast<std::uint64_t>(cases++);
    const std::string difference = try_case(current, rows);
    if (difference.empty()) continue;
    fmt::print("fuzz-bits --once --seed {}: {}\n", current, one_line(difference));
    return 1;
  } while (!only_one && elapsed() < seconds);
  fmt::print("{} cases, {} rows, no difference in {:.1f} s\n", cases, rows, elapsed());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "fuzz-bits: %s\n", error.what());
  return 1;
}
