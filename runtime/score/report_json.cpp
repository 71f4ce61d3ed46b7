#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bilogp/version.hpp"
#include "runtime/score/report.hpp"

namespace bilogp::score {
namespace {

using Json = nlohmann::ordered_json;

// Infinities and NaN have no JSON; they are null.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json sequence_json(const SequenceScore& score) {
  return {
      {"tokens", score.tokens},        {"ignored", score.ignored},          {"nan", score.nan},
      {"sum_logp", number(score.sum)}, {"mean_logp", number(score.mean())}, {"perplexity", number(score.perplexity())}};
}

Json sequences_json(const Report& report) {
  Json list = Json::array();
  for (const SequenceScore& score : report.sequences) {
    Json entry = {{"sequence", score.id}};
    entry.update(sequence_json(score));
    list.push_back(std::move(entry));
  }
  return list;
}

Json kernels_json(const Report& report) {
  Json list = Json::array();
  for (const KernelInfo& kernel : report.kernels) {
    const Specialization& spec = kernel.specialization;
    list.push_back({{"operator", to_string(spec.op)},
                    {"logits_dtype", to_string(spec.logits_dtype)},
                    {"id_dtype", to_string(spec.id_dtype)},
                    {"vocab_size", spec.vocab_size},
                    {"numerics", to_string(spec.numerics)},
                    {"target", kernel.target},
                    {"compiler", kernel.compiler},
                    {"origin", to_string(kernel.origin)},
                    {"seconds", kernel.seconds},
                    {"image_bytes", kernel.image_bytes}});
  }
  return list;
}

Json pass_json(const RowSet& rows, double seconds, int passes) {
  const auto n = static_cast<double>(rows.rows());
  return {{"seconds", seconds},
          {"rows_per_second", number(n / seconds)},
          {"gb_per_second", number(1e-9 * passes * n * static_cast<double>(rows.row_bytes()) / seconds)}};
}

Json differences_json(const BitDifferences& differences) {
  Json first = Json::array();
  for (const DifferentRow& row : differences.first)
    first.push_back({{"row", row.row},
                     {"field", row.field},
                     {"here", fmt::format("{:08x}", row.here)},
                     {"there", fmt::format("{:08x}", row.there)}});
  return {{"fields", differences.fields},
          {"rows", differences.rows_compared},
          {"rows_different", differences.rows_different},
          {"bits", differences.bits_compared},
          {"bits_different", differences.bits_different},
          {"first", std::move(first)}};
}

Json invariance_json(const InvarianceReport& invariance) {
  Json checks = Json::array();
  for (const InvarianceCheck& check : invariance.checks)
    checks.push_back({{"name", check.name},
                      {"bits", check.bits},
                      {"bits_different", check.bits_different},
                      {"seconds", check.seconds}});
  const PlainSumDifferences& plain = invariance.plain;
  return {{"rows", invariance.rows},
          {"checks", std::move(checks)},
          {"plain_float32",
           {{"rows", plain.rows},
            {"simple_against_8_partial_sums", plain.simple_against_8},
            {"8_against_16_partial_sums", plain.partial_8_against_16},
            {"simple_against_bilogp", plain.simple_against_bilogp}}}};
}

} // namespace

std::string json_report(const Report& report) {
  const RowSet& rows = *report.rows;
  const LogpOptions& options = report.options.logp;
  Json json = {{"bilogp", version()},
               {"contract", report.contract},
               {"file", report.file},
               {"target", report.target},
               {"threads", report.threads},
               {"rows", rows.rows()},
               {"shape", rows.shape()},
               {"logits_dtype", to_string(rows.dtype())},
               {"id_dtype", to_string(rows.id_dtype())},
               {"ids_per_row", rows.ids_per_row()},
               {"temperature", static_cast<float>(options.temperature)},
               {"vocab_size", options.vocab_size < 0 ? rows.columns() : options.vocab_size},
               {"ignore_index", options.ignore_index},
               {"sequences", sequences_json(report)},
               {"total", sequence_json(report.total)},
               {"kernels", kernels_json(report)},
               {"reading_seconds", report.timing.reading},
               {"forward", pass_json(rows, report.timing.forward, 1)}};
  if (report.options.grad) json["backward"] = pass_json(rows, report.timing.backward, 2);
  if (!report.output.empty()) json["output"] = report.output;
  if (report.verified) json["verify"] = differences_json(*report.verified);
  if (report.compared) {
    json["compare"] = differences_json(*report.compared);
    json["compare"]["other"] = report.other;
    if (!report.compare_warning.empty()) json["compare"]["warning"] = report.compare_warning;
  }
  if (report.invariance) json["invariance"] = invariance_json(*report.invariance);
  // File names may be any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace bilogp::score
