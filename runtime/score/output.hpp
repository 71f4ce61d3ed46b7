// Writes the results of a run to a file, while they are computed.
//
//   .safetensors  logp f32 [N] (or [N, K]), lse f32 [N], row_state i32 [N, 2], with the gradient also grad_logits in
//   the
//                 shape and dtype of the logits; __metadata__ says what the bits depend on (run_metadata.hpp)
//   .jsonl, .csv  a line per row (and target id), values in the shortest decimals that give their bits back, and the
//   bits
//
// Thread-safety: one owner.
#pragma once

#include <memory>
#include <string>

#include "runtime/score/score_rows.hpp"

namespace bilogp::score {

class OutputWriter : public ChunkSink {
public:
  // Completes the file and gives it its name. Without this call nothing is left.
  virtual void commit() = 0;
};

// The suffix of `path` chooses the format. Throws Error.
std::unique_ptr<OutputWriter> open_output(const std::string& path, const RowSet& rows, const ScoreOptions& options);

// Both ends of open_output, one per file.
std::unique_ptr<OutputWriter> open_safetensors_output(const std::string& path, const RowSet& rows,
                                                      const ScoreOptions& options);
enum class TextFormat { jsonl, csv };
std::unique_ptr<OutputWriter> open_text_output(const std::string& path, TextFormat format, const RowSet& rows);

} // namespace bilogp::score
