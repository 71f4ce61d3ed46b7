// The slow reference (tests/reference) as C functions, for the Python tests to call through ctypes.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "bilogp/export.hpp"
#include "tests/reference/canon_reference.hpp"

namespace {

using namespace bilogp::reference;

RowOptions options_of(std::int64_t vocab_size, std::int64_t ignore_index, float temperature) {
  RowOptions options;
  options.vocab_size = vocab_size;
  options.ignore_index = ignore_index;
  options.temperature = temperature;
  return options;
}

std::span<const std::uint32_t> row(const std::uint32_t* logits, std::int64_t columns) {
  return {logits, static_cast<std::size_t>(columns)};
}

} // namespace

extern "C" {

// One row, its columns as binary32 bits; `logp` has a place per id, `state` two.
BILOGP_API void reference_score(const std::uint32_t* logits, std::int64_t columns, const std::int64_t* ids,
                                std::int64_t id_count, std::int64_t vocab_size, std::int64_t ignore_index,
                                float temperature, std::uint32_t* logp, std::uint32_t* lse, std::int32_t* state) {
  const RowAnswer answer = score(row(logits, columns), {ids, static_cast<std::size_t>(id_count)},
                                 options_of(vocab_size, ignore_index, temperature));
  std::ranges::copy(answer.logp, logp);
  *lse = answer.lse;
  std::memcpy(state, &answer.state.m_bits, sizeof answer.state.m_bits);
  state[1] = answer.state.E;
}

// The gradient row before the last rounding, as binary32 bits.
BILOGP_API void reference_gradient(const std::uint32_t* logits, std::int64_t columns, std::int64_t id, float grad_logp,
                                   std::int64_t vocab_size, std::int64_t ignore_index, float temperature,
                                   std::uint32_t* gradient_bits) {
  std::ranges::copy(gradient(row(logits, columns), id, grad_logp, options_of(vocab_size, ignore_index, temperature)),
                    gradient_bits);
}

// Rounds binary32 bits to the storage (0 float32, 1 float16, 2 bfloat16).
BILOGP_API void reference_narrow(int storage, const std::uint32_t* bits, std::int64_t count, std::uint32_t* stored) {
  for (std::int64_t i = 0; i < count; ++i) stored[i] = narrow(static_cast<Storage>(storage), bits[i]);
}
}
