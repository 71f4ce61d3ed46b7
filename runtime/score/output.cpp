#include "runtime/score/output.hpp"

#include <string_view>

#include <fmt/format.h>

#include "bilogp/error.hpp"

namespace bilogp::score {

std::unique_ptr<OutputWriter> open_output(const std::string& path, const RowSet& rows, const ScoreOptions& options) {
  const std::string_view name = path;
  if (name.ends_with(".safetensors")) return open_safetensors_output(path, rows, options);
  const bool jsonl = name.ends_with(".jsonl");
  if (!jsonl && !name.ends_with(".csv"))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("cannot tell the format of --output {}; its name must end in .safetensors, .jsonl or .csv",
                            in_quotes(path)));
  if (options.grad)
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("gradients are written to .safetensors only, not to {}; leave --grad away or change the name",
                    in_quotes(path)));
  return open_text_output(path, jsonl ? TextFormat::jsonl : TextFormat::csv, rows);
}

} // namespace bilogp::score
