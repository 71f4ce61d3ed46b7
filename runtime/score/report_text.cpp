#include <bit>

#include <fmt/format.h>

#include "runtime/score/printable.hpp"
#include "runtime/score/report.hpp"
#include "runtime/score/text_table.hpp"

namespace bilogp::score {
namespace {

constexpr std::size_t most_sequences = 64;

std::string sequences_text(const Report& report) {
  TextTable table({"sequence", "tokens", "ignored", "NaN", "sum logp", "mean logp", "perplexity"});
  const auto add = [&](std::string name, const SequenceScore& score) {
    table.add({std::move(name), grouped(score.tokens), grouped(score.ignored), grouped(score.nan),
               fmt::format("{:.6f}", score.sum), significant(score.mean()), significant(score.perplexity())});
  };
  for (std::size_t i = 0; i < report.sequences.size() && i < most_sequences; ++i)
    add(fmt::format("{}", report.sequences[i].id), report.sequences[i]);
  if (report.sequences.size() > most_sequences)
    table.add({fmt::format("{} more", report.sequences.size() - most_sequences)});
  add("all", report.total);
  std::string text = table.text();
  if (report.rows->ids_per_row() > 1)
    text += fmt::format("  (the first of {} target ids of each row)\n", report.rows->ids_per_row());
  return text;
}

std::string origin_text(const KernelInfo& kernel) {
  switch (kernel.origin) {
  case KernelOrigin::compiled:
    return fmt::format("compiled in {}", duration_text(kernel.seconds));
  case KernelOrigin::store:
    return fmt::format("store, {}", duration_text(kernel.seconds));
  case KernelOrigin::loaded:
    break;
  }
  return "already loaded";
}

std::string kernels_text(const Report& report) {
  TextTable table({"<kernel", "<dtype", "vocabulary", "<target", "<compiler", "<origin"});
  for (const KernelInfo& kernel : report.kernels) {
    const Specialization& spec = kernel.specialization;
    table.add({std::string(to_string(spec.op)), std::string(to_string(spec.logits_dtype)),
               spec.vocab_size == 0 ? "any" : grouped(spec.vocab_size), kernel.target, kernel.compiler,
               origin_text(kernel)});
  }
  return table.text();
}

std::string rate_text(const char* what, const RowSet& rows, double seconds, int passes) {
  if (rows.rows() == 0 || seconds <= 0) return "";
  const auto n = static_cast<double>(rows.rows());
  return fmt::format("{} {} in {}: {}/s, {:.2f} GB/s\n", what, counted(rows.rows(), "row"), duration_text(seconds),
                     counted(static_cast<std::int64_t>(n / seconds), "row"),
                     1e-9 * passes * n * static_cast<double>(rows.row_bytes()) / seconds);
}

// Float fields with their value, others as bits.
std::string word_text(const DifferentRow& row, std::uint32_t bits, DType dtype) {
  if (row.field.starts_with("logp") || row.field.starts_with("lse") || row.field == "row_state[0]")
    return fmt::format("{:08x} ({:.9g})", bits, std::bit_cast<float>(bits));
  if (row.field.starts_with("grad")) return fmt::format("{:0{}x}", bits, 2 * size_of(dtype));
  return fmt::format("{}", static_cast<std::int32_t>(bits));
}

std::string differences_text(const BitDifferences& differences, const std::string& against, const RowSet& rows) {
  std::string fields;
  for (const std::string& field : differences.fields) fields += (fields.empty() ? "" : ", ") + field;
  std::string text =
      fmt::format("{} of {} differ from {}, in {} of {} ({})\n", grouped(differences.bits_different),
                  counted(differences.bits_compared, "bit"), against, grouped(differences.rows_different),
                  counted(differences.rows_compared, "row"), fields);
  if (differences.first.empty()) return text;
  TextTable table({"row", "<field", "<here", "<there"});
  for (const DifferentRow& row : differences.first)
    table.add(
        {grouped(row.row), row.field, word_text(row, row.here, rows.dtype()), word_text(row, row.there, rows.dtype())});
  return text + table.text();
}

std::string invariance_text(const InvarianceReport& invariance) {
  std::string text = fmt::format("\nThe same {} scored in other ways (logp, lse and row_state of each):\n",
                                 counted(invariance.rows, "row"));
  TextTable table({"<", ""});
  const auto add = [&](const std::string& name, std::int64_t different, std::int64_t bits) {
    table.add({name, fmt::format("{} of {} bits differ", grouped(different), grouped(bits))});
  };
  std::int64_t bits = 0;
  std::int64_t different = 0;
  for (const InvarianceCheck& check : invariance.checks) {
    add(check.name, check.bits_different, check.bits);
    bits += check.bits;
    different += check.bits_different;
  }
  add("all together", different, bits);
  text += table.text();

  const PlainSumDifferences& plain = invariance.plain;
  text += "\nPlain float32 sums of exp(x - max), on this machine alone:\n";
  TextTable plain_table({"<", ""});
  const auto add_plain = [&](const char* name, std::int64_t rows) {
    plain_table.add({name, fmt::format("{} of {} differ", grouped(rows), counted(plain.rows, "row"))});
  };
  add_plain("left to right, against 8 partial sums", plain.simple_against_8);
  add_plain("8 partial sums, against 16", plain.partial_8_against_16);
  add_plain("left to right, against bilogp", plain.simple_against_bilogp);
  return text + plain_table.text();
}

} // namespace

bool Report::differs() const {
  return (verified && verified->bits_different != 0) || (compared && compared->bits_different != 0) ||
         (invariance && !invariance->all_equal());
}

std::string text_report(const Report& report) {
  const RowSet& rows = *report.rows;
  const LogpOptions& options = report.options.logp;
  std::string text =
      fmt::format("{}: {} of {} {} logits, {} target ids", printable(report.file), counted(rows.rows(), "row"),
                  grouped(rows.columns()), to_string(rows.dtype()), to_string(rows.id_dtype()));
  if (rows.ids_per_row() > 1) text += fmt::format(" ({} a row)", rows.ids_per_row());
  text += fmt::format("\n{} on {}, {}, temperature {}", report.contract, report.target,
                      counted(report.threads, "thread"), static_cast<float>(options.temperature));
  if (options.vocab_size >= 0) text += fmt::format(", vocabulary {}", grouped(options.vocab_size));
  text += "\n\n" + sequences_text(report) + "\n" + kernels_text(report) + "\n";
  text += rate_text("scored", rows, report.timing.forward, 1);
  if (report.options.grad) text += rate_text("gradients of", rows, report.timing.backward, 2);
  if (!report.output.empty()) text += fmt::format("wrote {}\n", printable(report.output));
  if (report.verified) text += differences_text(*report.verified, "the slow reference", rows);
  if (report.compared) text += differences_text(*report.compared, printable(report.other), rows);
  if (report.invariance) text += invariance_text(*report.invariance);
  return text;
}

} // namespace bilogp::score
