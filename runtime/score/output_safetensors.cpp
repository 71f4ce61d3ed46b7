#include <array>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/score/atomic_file.hpp"
#include "runtime/score/output.hpp"
#include "runtime/score/run_metadata.hpp"

namespace bilogp::score {
namespace {

// All sizes are known before the first row is scored, so every chunk goes to its place at once.
class SafetensorsOutput : public OutputWriter {
public:
  SafetensorsOutput(const std::string& path, const RowSet& rows, const ScoreOptions& options)
      : file_(path), rows_(rows) {
    const std::int64_t n = rows.rows();
    std::vector<std::int64_t> logp_shape{n};
    if (rows.has_id_dimension()) logp_shape.push_back(rows.ids_per_row());
    header_["__metadata__"] = run_metadata(options, rows.columns());
    logp_ = add("logp", "F32", logp_shape, 4 * n * rows.ids_per_row());
    lse_ = add("lse", "F32", {n}, 4 * n);
    row_state_ = add("row_state", "I32", {n, 2}, 8 * n);
    if (options.grad) grad_ = add("grad_logits", dtype_name(rows.dtype()), rows.shape(), n * rows.row_bytes());
    write_header();
  }

  void take(const Chunk& chunk) override {
    const std::int64_t first = chunk.first_row;
    file_.write_at(begin_ + logp_ + 4 * first * rows_.ids_per_row(), std::as_bytes(chunk.logp));
    file_.write_at(begin_ + lse_ + 4 * first, std::as_bytes(chunk.lse));
    file_.write_at(begin_ + row_state_ + 8 * first, std::as_bytes(chunk.row_state));
    if (!chunk.grad_logits.empty()) file_.write_at(begin_ + grad_ + first * rows_.row_bytes(), chunk.grad_logits);
  }

  void commit() override { file_.commit(); }

private:
  static const char* dtype_name(DType dtype) {
    return dtype == DType::float32 ? "F32" : dtype == DType::float16 ? "F16" : "BF16";
  }

  std::int64_t add(const char* name, const char* dtype, const std::vector<std::int64_t>& shape, std::int64_t bytes) {
    const std::int64_t begin = std::exchange(data_bytes_, data_bytes_ + bytes);
    header_[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, data_bytes_}}};
    return begin;
  }

  void write_header() {
    std::string text = header_.dump();
    // Readers map the data; eight bytes keep every dtype aligned.
    text.resize((text.size() + 7) / 8 * 8, ' ');
    std::array<std::byte, 8> length{};
    for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<std::byte>(text.size() >> (8 * i));
    begin_ = static_cast<std::int64_t>(length.size() + text.size());
    file_.reserve(begin_ + data_bytes_);
    file_.write_at(0, length);
    file_.write_at(8, std::as_bytes(std::span(text.data(), text.size())));
  }

  AtomicFile file_;
  const RowSet& rows_;
  nlohmann::ordered_json header_;
  std::int64_t data_bytes_ = 0;
  std::int64_t begin_ = 0; // of the data, in the file
  std::int64_t logp_ = 0;  // offsets in the data
  std::int64_t lse_ = 0;
  std::int64_t row_state_ = 0;
  std::int64_t grad_ = 0;
};

} // namespace

std::unique_ptr<OutputWriter> open_safetensors_output(const std::string& path, const RowSet& rows,
                                                      const ScoreOptions& options) {
  return std::make_unique<SafetensorsOutput>(path, rows, options);
}

} // namespace bilogp::score
