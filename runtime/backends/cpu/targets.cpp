#include "runtime/backends/cpu/targets.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "bilogp/error.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace bilogp::cpu {
namespace {

// Features beyond x86-64-v4 that kernels may gain from, in the order in which a target's name has them.
constexpr std::array<std::string_view, 4> extra_features = {"avx512fp16", "avx512bf16", "avx512vbmi", "avx512vbmi2"};

struct Level {
  std::string_view name;
  std::vector<std::string_view> needs; // beyond the level before it in `levels`
};

const std::vector<Level>& x86_levels() {
  static const std::vector<Level> levels = {
      {"x86-64-v2", {"cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"}},
      {"x86-64-v3", {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}},
      {"x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}},
  };
  return levels;
}

#if defined(__x86_64__)
struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

// Which register states the operating system saves; without it AVX code faults although the processor has it.
unsigned saved_states() {
  if ((cpuid(1).c & (1U << 27)) == 0) return 0;
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

std::vector<std::string_view> detect() {
  std::vector<std::string_view> have;
  const auto add = [&](bool present, std::string_view name) {
    if (present) have.push_back(name);
  };
  const auto bit = [](unsigned word, int n) { return ((word >> n) & 1U) != 0; };
  const Registers one = cpuid(1);
  const Registers seven = cpuid(7);
  const Registers seven_one = seven.a >= 1 ? cpuid(7, 1) : Registers{};
  const Registers extended = cpuid(0x80000001U);
  const unsigned states = saved_states();
  const bool ymm = (states & 0x6U) == 0x6U;
  const bool zmm = (states & 0xe6U) == 0xe6U;
  add(bit(one.c, 13), "cx16");
  add(bit(extended.c, 0), "sahf");
  add(bit(one.c, 23), "popcnt");
  add(bit(one.c, 0), "sse3");
  add(bit(one.c, 9), "ssse3");
  add(bit(one.c, 19), "sse4.1");
  add(bit(one.c, 20), "sse4.2");
  add(ymm && bit(one.c, 28), "avx");
  add(ymm && bit(seven.b, 5), "avx2");
  add(bit(seven.b, 3), "bmi");
  add(bit(seven.b, 8), "bmi2");
  add(ymm && bit(one.c, 29), "f16c");
  add(ymm && bit(one.c, 12), "fma");
  add(bit(extended.c, 5), "lzcnt");
  add(bit(one.c, 22), "movbe");
  add(zmm && bit(seven.b, 16), "avx512f");
  add(zmm && bit(seven.b, 30), "avx512bw");
  add(zmm && bit(seven.b, 28), "avx512cd");
  add(zmm && bit(seven.b, 17), "avx512dq");
  add(zmm && bit(seven.b, 31), "avx512vl");
  add(zmm && bit(seven_one.a, 5), "avx512bf16");
  add(zmm && bit(seven.d, 23), "avx512fp16");
  add(zmm && bit(seven.c, 1), "avx512vbmi");
  add(zmm && bit(seven.c, 6), "avx512vbmi2");
  return have;
}
#else
std::vector<std::string_view> detect() {
  return {};
}
#endif

const std::vector<std::string_view>& host() {
  static const std::vector<std::string_view> features = detect();
  return features;
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

bool host_has(std::string_view feature) {
  return std::ranges::find(host(), feature) != host().end();
}

// What x86-64-vN needs, all levels below it included.
std::vector<std::string_view> needs_of(std::string_view level) {
  std::vector<std::string_view> needs;
  for (const Level& l : x86_levels()) {
    needs.insert(needs.end(), l.needs.begin(), l.needs.end());
    if (l.name == level) break;
  }
  return needs;
}

std::string native_name() {
#if defined(__aarch64__)
  return "aarch64";
#else
  std::string best = "x86-64-v2";
  for (const Level& level : x86_levels())
    if (std::ranges::all_of(needs_of(level.name), host_has)) best = level.name;
  if (best == "x86-64-v4")
    for (const std::string_view extra : extra_features)
      if (host_has(extra)) best.append("+").append(extra);
  return best;
#endif
}

[[noreturn]] void unknown_target(std::string_view name) {
  std::string sentence = "unknown CPU target \"";
  sentence.append(name).append("\"; expected native");
  for (const std::string& level : known_levels()) sentence.append(", ").append(level);
  sentence.append(", or x86-64-v4 with some of");
  for (const std::string_view extra : extra_features) sentence.append(" +").append(extra);
  throw Error(ErrorKind::invalid_argument, sentence);
}

// "+avx512fp16+avx512bf16" -> its parts.
std::vector<std::string_view> extras_of(std::string_view suffix) {
  std::vector<std::string_view> extras;
  while (!suffix.empty()) {
    suffix.remove_prefix(1);
    extras.push_back(suffix.substr(0, suffix.find('+')));
    suffix.remove_prefix(extras.back().size());
  }
  return extras;
}

} // namespace

const std::vector<std::string>& known_levels() {
  static const std::vector<std::string> levels = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"};
  return levels;
}

Target resolve_target(std::string_view name) {
  if (name.empty() || name == "native") return resolve_target(native_name());
  const std::string_view level = name.substr(0, name.find('+'));
  if (std::ranges::find(known_levels(), level) == known_levels().end()) unknown_target(name);
  Target target{std::string(level), "x86_64-unknown-linux-gnu", std::string(level), {}};
  if (level == "aarch64") {
    target.triple = "aarch64-unknown-linux-gnu";
    target.cpu = "generic";
    target.features = {"+v8a", "+fp-armv8", "+neon"};
  }
  // One name per target: the extra features in their order, each once.
  const std::vector<std::string_view> extras = extras_of(name.substr(level.size()));
  for (const std::string_view extra : extra_features) {
    const auto times = std::ranges::count(extras, extra);
    if (times == 0) continue;
    if (times > 1 || level != "x86-64-v4") unknown_target(name);
    target.features.push_back(std::string("+").append(extra));
    target.name += target.features.back();
  }
  if (target.features.size() != extras.size() && level != "aarch64") unknown_target(name);
  if (level == "aarch64" && !extras.empty()) unknown_target(name);
  return target;
}

bool runs_here(const Target& target, std::string* missing) {
  std::vector<std::string_view> lacking;
#if defined(__aarch64__)
  if (target.name != "aarch64") lacking.emplace_back("an x86-64 processor");
#else
  if (target.name == "aarch64") {
    lacking.emplace_back("an AArch64 processor");
  } else {
    std::vector<std::string_view> needs = needs_of(target.cpu);
    for (const std::string& feature : target.features) needs.push_back(std::string_view(feature).substr(1));
    std::ranges::remove_copy_if(needs, std::back_inserter(lacking), host_has);
  }
#endif
  if (missing != nullptr) *missing = joined(lacking);
  return lacking.empty();
}

std::string host_features() {
  return joined(host());
}

} // namespace bilogp::cpu
