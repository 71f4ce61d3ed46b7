#include "cache/warmcache/options.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bilogp/version.hpp"
#include "runtime/backends/cpu/targets.hpp"
#include "runtime/backends/cuda/targets.hpp"
#include "runtime/score/standard_streams.hpp"

namespace bilogp::warmcache {

namespace {

constexpr const char* description =
    "Compiles bilogp's kernels ahead of time and looks after the store that keeps them.";

constexpr const char* details =
    R"(The store is BILOGP_CACHE_DIR, else bilogp in $XDG_CACHE_HOME, $HOME/.cache or the user's home in passwd, else
$TMPDIR/bilogp-UID; BILOGP_CACHE_MAX_BYTES bounds it (256 MB).

Exit status: 0 fine, 1 a problem was found, 2 bad usage.)";

template<class Value> using Words = std::vector<std::pair<std::string_view, Value>>;

const Words<Operator> operator_words = {{"logp_forward", Operator::logp_forward},
                                        {"logp_backward", Operator::logp_backward},
                                        {"logp_partial", Operator::logp_partial},
                                        {"logp_finish", Operator::logp_finish},
                                        {"logp_with_gradient", Operator::logp_with_gradient},
                                        {"forward", Operator::logp_forward},
                                        {"backward", Operator::logp_backward},
                                        {"partial", Operator::logp_partial},
                                        {"finish", Operator::logp_finish},
                                        {"with_gradient", Operator::logp_with_gradient}};
const Words<DType> logits_words = {{"float32", DType::float32},   {"float16", DType::float16},
                                   {"bfloat16", DType::bfloat16}, {"fp32", DType::float32},
                                   {"fp16", DType::float16},      {"bf16", DType::bfloat16}};
const Words<Numerics> numerics_words = {{"portable", Numerics::portable}, {"native", Numerics::native}};
const Words<DType> id_words = {{"int32", DType::int32}, {"int64", DType::int64}};

class Complaint : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

template<class Value> void add_once(std::vector<Value>& values, Value value) {
  if (std::ranges::find(values, value) == values.end()) values.push_back(std::move(value));
}

// `distinct` words are listed in a complaint, the others are their short names; "all" stands for all.
template<class Value>
std::vector<Value> values_of(const char* option, const std::vector<std::string>& texts, const Words<Value>& words,
                             std::size_t distinct) {
  std::vector<Value> values;
  for (const std::string& text : texts) {
    const auto found = std::ranges::find(words, text, [](const auto& word) { return word.first; });
    if (found != words.end()) {
      add_once(values, found->second);
    } else if (text == "all") {
      for (std::size_t i = 0; i < distinct; ++i) add_once(values, words[i].second);
    } else {
      std::vector<std::string_view> known;
      for (std::size_t i = 0; i < distinct; ++i) known.push_back(words[i].first);
      throw Complaint(fmt::format("{} has '{}'; expected some of {}, or all", option, text, fmt::join(known, ", ")));
    }
  }
  return values;
}

std::vector<std::int64_t> vocab_sizes_of(const std::vector<std::string>& texts) {
  constexpr std::int64_t largest = std::int64_t{1} << 31;
  std::vector<std::int64_t> sizes;
  for (const std::string& text : texts) {
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (text != "any" && (!whole || size < 0 || size > largest))
      throw Complaint(fmt::format("--vocab-sizes has '{}'; expected whole numbers up to {}, or any", text, largest));
    add_once(sizes, text == "any" ? 0 : size);
  }
  return sizes;
}

std::vector<std::string> targets_of(const std::vector<std::string>& texts) {
  std::vector<std::string> targets;
  for (const std::string& text : texts) {
    const std::vector<std::string>& levels = cpu::known_levels();
    if (text == "all") {
      for (const std::string& level : levels) add_once(targets, "cpu:" + level);
    } else if (text == "cuda:all") {
      for (const std::string& architecture : cuda::known_targets()) add_once(targets, "cuda:" + architecture);
    } else {
      // A level's or an architecture's name may stand alone.
      const bool is_level =
          std::ranges::any_of(levels, [&](const std::string& level) { return text.starts_with(level); });
      const bool is_cuda = text.starts_with("sm_");
      if (text.empty() || text.ends_with(':'))
        throw Complaint(
            fmt::format("--targets has '{}', which names no target; expected some of cpu, cuda, {}, sm_90a, "
                        "..., all or cuda:all",
                        text, fmt::join(levels, ", ")));
      add_once(targets, is_level ? "cpu:" + text : is_cuda ? "cuda:" + text : text);
    }
  }
  return targets;
}

struct WarmTexts {
  std::vector<std::string> operators = {"all"};
  std::vector<std::string> logits_dtypes = {"all"};
  std::vector<std::string> id_dtypes = {"int64"};
  std::vector<std::string> vocab_sizes = {"any"};
  std::vector<std::string> numerics = {"portable"};
  std::vector<std::string> targets = {"cpu"};
};

void add_warm(CLI::App& app, CommandLine& line, WarmTexts& texts) {
  CLI::App* warm = app.add_subcommand("warm", "compile kernels into the store, all combinations of what is named");
  const auto add = [&](const char* name, std::vector<std::string>& values, const char* text) {
    warm->add_option(name, values, text)->delimiter(',')->type_name("LIST");
  };
  add("--operators", texts.operators, "logp_forward,logp_backward,logp_partial,logp_finish,logp_with_gradient (all)");
  add("--dtypes", texts.logits_dtypes, "of the logits: float32,float16,bfloat16 (all)");
  add("--id-dtypes", texts.id_dtypes, "of the target ids: int64,int32 (int64)");
  add("--vocab-sizes", texts.vocab_sizes, "widths of the vocabulary, 0 or any for the kernel of all widths (any)");
  add("--numerics", texts.numerics, "portable,native; native on a GPU only (portable)");
  add("--targets", texts.targets,
      "cpu, x86-64-v3, ..., all for these; cuda, sm_90a, ..., cuda:all; what this machine lacks is only stored (cpu)");
  warm->add_option("--jobs", line.warm.jobs, "compile so many at once (the cores of this process)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
}

void translate(const WarmTexts& texts, WarmRequest& request) {
  request.operators = values_of("--operators", texts.operators, operator_words, 5);
  request.logits_dtypes = values_of("--dtypes", texts.logits_dtypes, logits_words, 3);
  request.id_dtypes = values_of("--id-dtypes", texts.id_dtypes, id_words, 2);
  request.vocab_sizes = vocab_sizes_of(texts.vocab_sizes);
  request.numerics = values_of("--numerics", texts.numerics, numerics_words, 2);
  request.targets = targets_of(texts.targets);
}

struct Subcommand {
  const char* name;
  Command command;
  const char* text; // null: added with options of its own
};

constexpr Subcommand subcommands[] = {
    {"warm", Command::warm, nullptr},
    {"list", Command::list, "list the kernels of the store"},
    {"verify", Command::verify, "check every kernel of the store: its checksum, and that it can be loaded"},
    {"where", Command::where, "say where the store is, why there, and how large"},
    {"clear", Command::clear, "remove all kernels from the store"},
    {"doctor", Command::doctor, "say which back ends work, and why the others do not"},
};

// CLI11 only says that a subcommand is missing.
std::string explained(const CLI::ParseError& error, int argc, const char* const* argv) {
  std::string names;
  for (const Subcommand& subcommand : subcommands) names += (names.empty() ? "" : ", ") + std::string(subcommand.name);
  const bool missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (missing && argc > 1) return fmt::format("'{}' is no command; expected one of {}; see --help", argv[1], names);
  if (missing) return fmt::format("a command is missing; expected one of {}; see --help", names);
  return fmt::format("{}; see --help", error.what());
}

} // namespace

std::optional<CommandLine> parse_command_line(int argc, const char* const* argv, int& exit_code) {
  CommandLine line;
  WarmTexts texts;
  CLI::App app(description, program_name);
  app.footer(details);
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("bilogp-warmcache {} ({})", version(), contract_id()));
  for (const Subcommand& subcommand : subcommands) {
    if (subcommand.text == nullptr)
      add_warm(app, line, texts);
    else
      app.add_subcommand(subcommand.name, subcommand.text);
    app.get_subcommand(subcommand.name)->add_flag("--json", line.json, "print JSON instead of a table");
  }
  exit_code = exit_usage;
  std::string complaint;
  try {
    app.parse(argc, argv);
    for (const Subcommand& subcommand : subcommands)
      if (app.got_subcommand(subcommand.name)) line.command = subcommand.command;
    translate(texts, line.warm);
    return line;
  } catch (const CLI::Success& asked) {
    std::ostringstream text;
    app.exit(asked, text, text);
    const bool written = score::print_out(text.str());
    exit_code = written ? exit_fine : exit_problem;
    if (!written) complaint = "the answer could not be written to stdout";
  } catch (const CLI::ParseError& error) {
    complaint = explained(error, argc, argv);
  } catch (const Complaint& error) {
    complaint = error.what();
  }
  score::complain(program_name, complaint);
  return std::nullopt;
}

} // namespace bilogp::warmcache
