// Scores the rows of a file chunk by chunk, so that a file of any length needs little memory.
//
// Thread-safety: one call at a time per set of sinks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "bilogp/runtime.hpp"
#include "bilogp/version.hpp"
#include "runtime/score/row_set.hpp"

namespace bilogp::score {

struct ScoreOptions {
  LogpOptions logp;
  std::string contract = std::string(contract_id()); // of the results
  bool grad = false;                                 // the gradient at upstream 1 too
  std::int64_t chunk_bytes = std::int64_t{64} << 20; // of logits
};

// Results of the rows [first_row, first_row + rows), floats as bits. Valid during take() only.
struct Chunk {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::span<const std::byte> logits;
  std::span<const std::uint32_t> logp;     // [rows, K]
  std::span<const std::uint32_t> lse;      // [rows]
  std::span<const std::int32_t> row_state; // [rows, 2]
  std::span<const std::byte> grad_logits;  // [rows, V] in the logits' dtype; empty without grad
};

// Receives every chunk in row order.
class ChunkSink {
public:
  virtual ~ChunkSink() = default;
  virtual void take(const Chunk& chunk) = 0;
};

struct ScoreTiming {
  double reading = 0; // seconds spent waiting for the file, and for copies to and from a GPU
  double forward = 0; // in the kernels' calls alone
  double backward = 0;
};

// `progress` is called with the rows done so far. Kernels are made ready on a few rows before anything is timed. Throws
// Error.
ScoreTiming score_rows(Runtime& runtime, const RowSet& rows, const ScoreOptions& options,
                       std::span<ChunkSink* const> sinks, const std::function<void(std::int64_t)>& progress);

} // namespace bilogp::score
