#include "runtime/score/verify.hpp"

#include <bit>
#include <cstring>
#include <vector>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include "tests/reference/canon_reference.hpp"

namespace bilogp::score {
namespace {

reference::Storage storage_of(DType dtype) {
  return dtype == DType::float32   ? reference::Storage::float32
         : dtype == DType::float16 ? reference::Storage::float16
                                   : reference::Storage::bfloat16;
}

std::uint32_t stored_bits(const std::byte* element, std::int64_t bytes) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, element, static_cast<std::size_t>(bytes));
  return bits;
}

} // namespace

Verify::Verify(const RowSet& rows, const ScoreOptions& options) : rows_(rows), options_(options) {
  differences_.fields = {"logp", "lse", "row_state"};
  if (options.grad) differences_.fields.emplace_back("grad_logits");
}

void Verify::take(const Chunk& chunk) {
  std::vector<BitDifferences> found(static_cast<std::size_t>(chunk.rows));
  tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, chunk.rows, 1), [&](const auto& range) {
    for (std::int64_t i = range.begin(); i < range.end(); ++i)
      found[static_cast<std::size_t>(i)] = verify_row(chunk, i);
  });
  for (const BitDifferences& row : found) differences_.append(row);
}

BitDifferences Verify::verify_row(const Chunk& chunk, std::int64_t index) const {
  const auto i = static_cast<std::size_t>(index);
  const auto k_count = static_cast<std::size_t>(rows_.ids_per_row());
  const std::int64_t row = chunk.first_row + index;
  const std::int64_t size = size_of(rows_.dtype());
  const reference::Storage storage = storage_of(rows_.dtype());
  const reference::RowOptions options{options_.logp.vocab_size, options_.logp.ignore_index,
                                      static_cast<float>(options_.logp.temperature)};
  std::vector<std::uint32_t> logits(static_cast<std::size_t>(rows_.columns()));
  const std::byte* element = chunk.logits.data() + index * rows_.row_bytes();
  for (std::uint32_t& bits : logits) {
    bits = reference::widen(storage, element);
    element += size;
  }
  std::vector<std::int64_t> ids(k_count);
  for (std::size_t k = 0; k < k_count; ++k) ids[k] = rows_.target_id(row, static_cast<std::int64_t>(k));
  const reference::RowAnswer answer = reference::score(logits, ids, options);

  BitDifferences found;
  found.begin_row(row);
  for (std::size_t k = 0; k < k_count; ++k)
    found.compare("logp", chunk.logp[i * k_count + k], answer.logp[k], k_count > 1 ? static_cast<std::int64_t>(k) : -1);
  found.compare("lse", chunk.lse[i], answer.lse);
  found.compare("row_state", static_cast<std::uint32_t>(chunk.row_state[2 * i]), answer.state.m_bits, 0);
  found.compare("row_state", static_cast<std::uint32_t>(chunk.row_state[2 * i + 1]),
                static_cast<std::uint32_t>(answer.state.E), 1);
  if (!options_.grad) return found;
  const auto gradient = reference::gradient(logits, ids[0], 1.0F, options);
  const std::byte* got = chunk.grad_logits.data() + index * rows_.row_bytes();
  for (std::size_t j = 0; j < gradient.size(); ++j, got += size)
    found.compare("grad_logits", stored_bits(got, size), reference::narrow(storage, gradient[j]),
                  static_cast<std::int64_t>(j), static_cast<int>(8 * size));
  return found;
}

} // namespace bilogp::score
