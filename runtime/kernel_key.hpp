// A specialization and its target as one word: what the table of loaded kernels is searched by.
#pragma once

#include <cstdint>

#include "bilogp/specialization.hpp"

namespace bilogp {

constexpr std::int64_t largest_vocab = std::int64_t{1} << 31;
// From here on a forward kernel gets its vocabulary as a constant; below, all widths share one kernel.
constexpr std::int64_t smallest_fixed_vocab = 4096;

// Throws Error(invalid_argument) for a dtype or vocab_size that no kernel has.
void check_specialization(const Specialization& spec);

// The specialization that is really compiled: fields that an operator does not depend on get one value.
Specialization normalised(Specialization spec);

struct KernelKey {
  std::uint64_t word = 0; // 0 is no key
  friend bool operator==(KernelKey, KernelKey) = default;
};

// `spec` must have passed check_specialization; target_id is below 1024.
constexpr KernelKey kernel_key(const Specialization& spec, int target_id) noexcept {
  std::uint64_t word = 1; // never 0
  const auto append = [&word](std::uint64_t value, int bits) { word = (word << bits) | value; };
  append(static_cast<std::uint64_t>(target_id), 10);
  append(static_cast<std::uint64_t>(spec.op), 3);
  append(static_cast<std::uint64_t>(spec.logits_dtype), 3);
  append(static_cast<std::uint64_t>(spec.id_dtype), 3);
  append(static_cast<std::uint64_t>(spec.numerics), 1);
  append(spec.variant, 8);
  append(static_cast<std::uint64_t>(spec.vocab_size), 32);
  return {word};
}

} // namespace bilogp
