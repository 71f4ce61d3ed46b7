#include <bit>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "runtime/score/atomic_file.hpp"
#include "runtime/score/output.hpp"

namespace bilogp::score {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

struct Line {
  std::int64_t row;
  std::int64_t sequence;
  std::int64_t k;
  std::int64_t target_id;
  std::uint32_t logp;
  std::uint32_t lse;
  std::uint32_t m;
  std::int32_t e;
};

// JSON has no word for infinities and NaN; the bits tell them apart.
std::string json_number(std::uint32_t bits) {
  const auto value = std::bit_cast<float>(bits);
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

class TextOutput : public OutputWriter {
public:
  TextOutput(const std::string& path, TextFormat format, const RowSet& rows)
      : file_(path), format_(format), rows_(rows) {
    if (format == TextFormat::csv)
      text_ = fmt::format("row,sequence,{}target_id,logp,logp_bits,lse,lse_bits,state_m_bits,state_E\n",
                          rows.has_id_dimension() ? "k," : "");
  }

  void take(const Chunk& chunk) override {
    const std::int64_t k_count = rows_.ids_per_row();
    for (std::int64_t i = 0; i < chunk.rows; ++i)
      for (std::int64_t k = 0; k < k_count; ++k) {
        const std::int64_t row = chunk.first_row + i;
        const auto at = static_cast<std::size_t>(i);
        write({row, rows_.sequence(row), k, rows_.target_id(row, k),
               chunk.logp[static_cast<std::size_t>(i * k_count + k)], chunk.lse[at],
               static_cast<std::uint32_t>(chunk.row_state[2 * at]), chunk.row_state[2 * at + 1]});
      }
  }

  void commit() override {
    flush();
    file_.commit();
  }

private:
  void write(const Line& line) {
    auto out = std::back_inserter(text_);
    if (format_ == TextFormat::csv) {
      fmt::format_to(out, "{},{},", line.row, line.sequence);
      if (rows_.has_id_dimension()) fmt::format_to(out, "{},", line.k);
      fmt::format_to(out, "{},{},{:08x},{},{:08x},{:08x},{}\n", line.target_id, std::bit_cast<float>(line.logp),
                     line.logp, std::bit_cast<float>(line.lse), line.lse, line.m, line.e);
    } else {
      fmt::format_to(out, R"({{"row":{},"sequence":{},)", line.row, line.sequence);
      if (rows_.has_id_dimension()) fmt::format_to(out, R"("k":{},)", line.k);
      fmt::format_to(out, R"("target_id":{},"logp":{},"logp_bits":"{:08x}","lse":{},"lse_bits":"{:08x}",)",
                     line.target_id, json_number(line.logp), line.logp, json_number(line.lse), line.lse);
      fmt::format_to(out, R"("row_state":{{"m_bits":"{:08x}","E":{}}}}})", line.m, line.e);
      text_ += '\n';
    }
    if (text_.size() >= buffer_bytes) flush();
  }

  void flush() {
    file_.append(text_);
    text_.clear();
  }

  AtomicFile file_;
  TextFormat format_;
  const RowSet& rows_;
  std::string text_;
};

} // namespace

std::unique_ptr<OutputWriter> open_text_output(const std::string& path, TextFormat format, const RowSet& rows) {
  return std::make_unique<TextOutput>(path, format, rows);
}

} // namespace bilogp::score
