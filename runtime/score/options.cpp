#include "runtime/score/options.hpp"

#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "bilogp/version.hpp"
#include "runtime/backends/cpu/threads.hpp"
#include "runtime/score/standard_streams.hpp"

namespace bilogp::score {
namespace {

constexpr const char* description = "Scores rows of logits: logp[row] = logits[row, target] - logsumexp(logits[row, "
                                    ":]), in float32, one answer to the bit\n"
                                    "whatever the batch, memory layout, shards, threads or instruction set.";

constexpr const char* details = R"(Inputs:
  FILE.safetensors          with the tensors logits [..., V] (F32, F16, BF16), target_ids [...] or [..., K] (I32, I64)
                            and, where rows belong to sequences, sequence_ids [...]; --logits, --target-ids and
                            --sequence-ids give other names
  FILE.npy --target-ids IDS.npy, or --logits A.npy --target-ids IDS.npy
                            arrays as numpy.save writes them; bfloat16 kept as <V2 or uint16 needs --dtype bf16

Outputs (--output):
  .safetensors              logp F32 [N] or [N, K], lse F32 [N], row_state I32 [N, 2] and, with --grad, grad_logits
  .jsonl, .csv              a line per row and target id, with the values and their bits

Exit status: 0 fine, 1 bits differ (--verify, --compare, --invariance), 2 bad input or usage.)";

struct Texts {
  std::string dtype;
  bool native = false;
};

void add_input_options(CLI::App& app, CommandLine& line, Texts& texts) {
  app.add_option("FILE", line.inputs.file, "a .safetensors file, or the logits as .npy")->type_name("");
  app.add_option("--logits", line.inputs.logits,
                 "name of the logits in FILE (logits), or an .npy file when FILE is left away")
      ->type_name("NAME");
  app.add_option("--target-ids", line.inputs.target_ids, "name of the target ids in FILE (target_ids), or an .npy file")
      ->type_name("NAME");
  app.add_option("--sequence-ids", line.inputs.sequence_ids,
                 "name of the sequence ids in FILE (sequence_ids, where there is one), or an .npy file")
      ->type_name("NAME");
  app.add_option("--dtype", texts.dtype, "what the logits are: fp32, fp16 or bf16")->type_name("D");
  app.add_option("--limit-rows", line.limit_rows, "score the first N rows only")->type_name("N");
}

void add_score_options(CLI::App& app, CommandLine& line, Texts& texts) {
  LogpOptions& logp = line.score.logp;
  app.add_option("--arch", line.target, "what to run on: auto, cpu, cpu:x86-64-v3, ..., cuda")->type_name("A");
  app.add_option("--temperature", logp.temperature, "divide the logits by this (1)")->type_name("T");
  app.add_option("--vocab-size", logp.vocab_size, "columns from here on are padding (all are used)")->type_name("V");
  app.add_option("--ignore-index", logp.ignore_index, "rows with this target id are not read (-100)")->type_name("I");
  app.add_option("--threads", logp.threads, "CPU threads (the cores of this process)")->type_name("N");
  app.add_flag("--native", texts.native, "the GPU's own exponential: the same bits on this architecture only");
  app.add_flag("--grad", line.score.grad, "compute the gradient of logp as well, at upstream 1");
}

void add_result_options(CLI::App& app, CommandLine& line) {
  app.add_option("--output", line.output, "write the results to this .safetensors, .jsonl or .csv file")
      ->type_name("FILE");
  app.add_flag("--json", line.json, "print the report as JSON");
  app.add_flag("--verify", line.verify, "compare every row with the slow reference, bit by bit");
  app.add_option("--compare", line.compare, "compare with the .safetensors output of another run, bit by bit")
      ->type_name("OTHER");
  app.add_flag("--invariance", line.invariance,
               "score the rows again alone, shuffled, strided, sharded, on other threads and instruction sets");
  app.set_version_flag("--version", fmt::format("bilogp-score {} ({})", version(), contract_id()));
}

// The library checks what it is given; here is what only the command line can get wrong. Empty when nothing is.
std::string check_values(const CLI::App& app, CommandLine& line, const Texts& texts) {
  const LogpOptions& logp = line.score.logp;
  for (const char* const option :
       {"--logits", "--target-ids", "--sequence-ids", "--dtype", "--arch", "--output", "--compare"})
    if (app.count(option) > 0 && app[option]->as<std::string>().empty())
      return fmt::format("{} is empty, expected a name; see --help", option);
  if (line.target.ends_with(':'))
    return fmt::format("--arch {} names nothing behind the colon; leave the colon away, or see --help",
                       in_quotes(line.target));
  if (app.count("--threads") > 0 && (logp.threads < 1 || logp.threads > cpu::largest_thread_count))
    return fmt::format("--threads is {}, expected 1 to {}", logp.threads, +cpu::largest_thread_count);
  if (app.count("--vocab-size") > 0 && logp.vocab_size < 1)
    return fmt::format("--vocab-size is {}, expected 1 or more", logp.vocab_size);
  if (app.count("--limit-rows") > 0 && line.limit_rows < 0)
    return fmt::format("--limit-rows is {}, expected 0 or more", line.limit_rows);
  if (texts.native) line.score.logp.numerics = Numerics::native;
  if (texts.native && line.verify) return "--verify compares with the portable answer, which --native does not give";
  if (texts.dtype.empty()) return "";
  line.inputs.logits_dtype = dtype_from_option(texts.dtype);
  return line.inputs.logits_dtype
             ? ""
             : fmt::format("--dtype {} is unknown, expected fp32, fp16 or bf16", in_quotes(texts.dtype));
}

} // namespace

std::optional<CommandLine> parse_command_line(int argc, const char* const* argv, int& exit_code) {
  CommandLine line;
  Texts texts;
  CLI::App app(description, program_name);
  app.footer(details);
  add_input_options(app, line, texts);
  add_score_options(app, line, texts);
  add_result_options(app, line);
  exit_code = exit_fine;
  std::string complaint;
  try {
    app.parse(argc, argv);
    complaint = check_values(app, line, texts);
  } catch (const CLI::Success& asked) {
    std::ostringstream text;
    app.exit(asked, text, text);
    if (print_out(text.str())) return std::nullopt;
    complaint = "the answer could not be written to stdout";
  } catch (const CLI::ParseError& error) {
    complaint = fmt::format("{}; see --help", error.what());
  }
  if (complaint.empty()) return line;
  complain(program_name, complaint);
  exit_code = exit_bad_input;
  return std::nullopt;
}

} // namespace bilogp::score
