// bilogp-warmcache: compiles kernels ahead of time and looks after their store.
#include <csignal>
#include <exception>
#include <new>

#include "bilogp/error.hpp"
#include "cache/warmcache/commands.hpp"
#include "runtime/score/standard_streams.hpp"

namespace {

using namespace bilogp;
using namespace bilogp::warmcache;

void complain(std::string_view lines) noexcept {
  score::complain(program_name, lines);
}

Answer answer_to(const CommandLine& line, cache::Store& store) {
  switch (line.command) {
  case Command::warm:
    return warm(line.warm, store);
  case Command::list:
    return list(store);
  case Command::verify:
    return verify(store);
  case Command::where:
    return where(store);
  case Command::clear:
    return clear(store);
  case Command::doctor:
    return doctor(store);
  }
  return {};
}

int run(const CommandLine& line) {
  cache::Store store(cache::default_location(), [](std::string_view sentence) { complain(sentence); });
  const Answer answer = answer_to(line, store);
  // Paths may be of any bytes, JSON is UTF-8.
  const std::string text =
      line.json ? answer.json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : answer.text;
  const bool written = score::print_out(text);
  complain(answer.advice);
  if (!written) throw Error(ErrorKind::io, "the answer could not be written to stdout");
  return answer.exit_code;
}

} // namespace

int main(int argc, char** argv) {
  score::occupy_standard_streams();
  // A closed pipe and a file size limit are then errors of the write, with a sentence.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    int exit_code = exit_fine;
    const auto line = parse_command_line(argc, argv, exit_code);
    return line ? run(*line) : exit_code;
  } catch (const Error& error) {
    complain(error.what());
    const bool usage = error.kind() == ErrorKind::invalid_argument || error.kind() == ErrorKind::unsupported;
    return usage ? exit_usage : exit_problem;
  } catch (const std::bad_alloc&) {
    complain("there is not enough memory for this");
  } catch (const std::exception& error) {
    complain(error.what());
  }
  return exit_problem;
}
