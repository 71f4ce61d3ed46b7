// bilogp-score: scores a file of logits and says what it found.
#include <algorithm>
#include <csignal>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <tbb/global_control.h>

#include "bilogp/bilogp.hpp"
#include "runtime/score/compare.hpp"
#include "runtime/score/options.hpp"
#include "runtime/score/output.hpp"
#include "runtime/score/progress.hpp"
#include "runtime/score/report.hpp"
#include "runtime/score/standard_streams.hpp"
#include "runtime/score/verify.hpp"

namespace {

using namespace bilogp;
using namespace bilogp::score;

void check_output_name(const CommandLine& line, const Inputs& inputs) {
  std::error_code ignored;
  for (const MappedFile& file : inputs.files)
    if (!line.output.empty() && std::filesystem::equivalent(line.output, file.path(), ignored))
      throw Error(
          ErrorKind::invalid_argument,
          fmt::format("--output {} is a file that is being scored; choose another name", in_quotes(line.output)));
}

Report score_file(CommandLine line, const Inputs& inputs, const RowSet& rows) {
  // A file lies in host memory, so "auto" is the CPU's own level; asking for that one gives it a name in the report.
  Runtime& runtime = Runtime::get(line.target == "auto" ? "cpu" : line.target);
  line.score.contract = contract_id(line.score.logp.numerics, runtime.target());
  if (line.score.grad && rows.has_id_dimension())
    throw Error(ErrorKind::invalid_argument,
                "--grad needs one target id per row, but the target ids have one dimension more");
  rows.check_ids(line.score.logp.vocab_size, line.score.logp.ignore_index);
  check_output_name(line, inputs);

  SequenceTable table(rows, line.score.logp.ignore_index);
  std::vector<ChunkSink*> sinks{&table};
  std::unique_ptr<OutputWriter> output;
  std::optional<Compare> compare;
  std::optional<Verify> verify;
  if (!line.compare.empty()) {
    sinks.push_back(&compare.emplace(line.compare, rows, line.score));
    if (!compare->warning().empty()) complain(program_name, "warning: " + compare->warning());
  }
  if (!line.output.empty()) sinks.push_back((output = open_output(line.output, rows, line.score)).get());
  if (line.verify) sinks.push_back(&verify.emplace(rows, line.score));

  Report report;
  ProgressBar bar(rows.rows());
  report.timing = score_rows(runtime, rows, line.score, sinks, [&](std::int64_t done) { bar.show(done); });
  if (output) output->commit();
  if (line.invariance) report.invariance = check_invariance(runtime, rows, line.score.logp);
  report.file = inputs.files[0].path();
  report.target = runtime.target();
  report.contract = line.score.contract;
  report.rows = &rows;
  report.options = line.score;
  report.threads = line.score.logp.threads > 0 ? line.score.logp.threads : Runtime::num_threads();
  report.sequences = table.sequences();
  report.total = table.total();
  report.kernels = Runtime::loaded_kernels();
  report.output = line.output;
  report.other = line.compare;
  if (verify) report.verified = verify->differences();
  if (compare) {
    report.compared = compare->differences();
    report.compare_warning = compare->warning();
  }
  return report;
}

int run(const CommandLine& line) {
  // oneTBB starts no more threads than the machine has cores, unless it is told so before.
  const int asked = line.score.logp.threads > 0 ? line.score.logp.threads : Runtime::num_threads();
  const tbb::global_control threads(
      tbb::global_control::max_allowed_parallelism,
      static_cast<std::size_t>(line.invariance ? std::max(asked, most_threads_checked) : asked));
  const Inputs inputs = open_inputs(line.inputs);
  const RowSet rows(inputs, line.limit_rows);
  const Report report = score_file(line, inputs, rows);
  const std::string text = line.json ? json_report(report) : text_report(report);
  if (!print_out(text)) throw Error(ErrorKind::io, "the report could not be written to stdout");
  return report.differs() ? exit_differences : exit_fine;
}

} // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  // A file size limit or a closed pipe is then an error of the write, with a sentence, and clean-up runs.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  try {
    int exit_code = exit_fine;
    const auto line = parse_command_line(argc, argv, exit_code);
    return line ? run(*line) : exit_code;
  } catch (const std::bad_alloc&) {
    complain(program_name, "there is not enough memory for this");
  } catch (const std::exception& error) {
    complain(program_name, error.what());
  }
  return exit_bad_input;
}
