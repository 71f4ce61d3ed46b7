// What the program does with a stdout or stderr that cannot be written, and with a terminal.
#include <doctest/doctest.h>

#include <array>
#include <string>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/score/printable.hpp"
#include "runtime/score/progress.hpp"
#include "tests/tools/score_files.hpp"

namespace {

using namespace bilogp;
using namespace bilogp::test;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A pseudo-terminal that controls no process.
struct Terminal {
  int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  std::string name;
  Terminal() {
    REQUIRE(master >= 0);
    REQUIRE(::grantpt(master) == 0);
    REQUIRE(::unlockpt(master) == 0);
    name = ::ptsname(master);
  }
  void become_stderr() const { ::dup2(::open(name.c_str(), O_RDWR | O_NOCTTY), STDERR_FILENO); }
};

int status_of(pid_t child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

} // namespace

TEST_CASE("a stderr that cannot be written changes no exit status") {
  const TemporaryDirectory directory;
  const std::string bare = directory.file("bare.safetensors"); // says no contract: a warning
  write_file(bare, safetensors_bytes({{"logp", "F32", {48}, bytes_of_values(expected_at_temperature_1().logp)}}));
  for (const ChildOptions& options : {ChildOptions{.stderr_path = "/dev/full"}, ChildOptions{.closed = {STDERR_FILENO}},
                                      ChildOptions{.closed = {STDIN_FILENO, STDERR_FILENO}}}) {
    CAPTURE(options.stderr_path);
    CHECK(run_score({"--no-such-option"}, options).exit_code == 2);
    CHECK(run_score({directory.file("none.safetensors")}, options).exit_code == 2);
    CHECK(run_score({sample_path(), "--threads", "0"}, options).exit_code == 2);
    const std::string out = directory.file("out.csv");
    const ChildResult compared = run_score({sample_path(), "--compare", bare, "--output", out}, options);
    CHECK(compared.exit_code == 0);
    CHECK(has(compared.out, "0 of 1,536 bits differ"));
    CHECK(read_file(out).starts_with("row,sequence,"));
  }
}

TEST_CASE("an answer that cannot be written is an error, also where it is help") {
  const TemporaryDirectory directory;
  for (const ChildOptions& options :
       {ChildOptions{.stdout_path = "/dev/full"}, ChildOptions{.closed = {STDOUT_FILENO}}}) {
    CAPTURE(options.stdout_path);
    for (const auto& words : {std::vector<std::string>{sample_path()}, {"--help"}, {"--version"}}) {
      const ChildResult run = run_score(words, options);
      CHECK(run.exit_code == 2);
      CHECK(has(run.err, "could not be written to stdout"));
    }
  }
  // Neither stream takes anything; what was asked for is complete all the same.
  const std::string out = directory.file("out.csv");
  const ChildResult run =
      run_score({sample_path(), "--output", out}, {.stdout_path = "/dev/full", .stderr_path = "/dev/full"});
  CHECK(run.exit_code == 2);
  CHECK(read_file(out).ends_with('\n'));
  CHECK(directory.names() == std::vector<std::string>{"out.csv"});
}

TEST_CASE("progress shows on a terminal after half a second, and nowhere else") {
  const Terminal terminal;
  const pid_t child = ::fork();
  if (child == 0) {
    terminal.become_stderr();
    {
      score::ProgressBar bar(100);
      bar.show(10);
      ::usleep(550'000);
      bar.show(50);
    }
    ::_exit(0);
  }
  // The terminal gives what it got, and an error at the end of it.
  std::string shown;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = ::read(terminal.master, buffer.data(), buffer.size())) > 0;)
    shown.append(buffer.data(), static_cast<std::size_t>(got));
  ::close(terminal.master);
  CHECK(status_of(child) == 0);
  CHECK_FALSE(has(shown, " 10 of 100 rows"));
  CHECK(has(shown, " 50 %  50 of 100 rows"));
  CHECK(shown.ends_with("\r\x1b[K"));
}

TEST_CASE("a terminal that is closed while progress shows does no harm") {
  const Terminal terminal;
  const pid_t child = ::fork();
  if (child == 0) {
    terminal.become_stderr();
    {
      score::ProgressBar bar(100);
      ::usleep(550'000);
      bar.show(50);
      ::close(terminal.master); // the last descriptor of it: its parent has none any more
      ::usleep(150'000);
      if (::write(STDERR_FILENO, "x", 1) >= 0) ::_exit(2); // the terminal is still there
      bar.show(80);
    }
    ::_exit(0);
  }
  ::close(terminal.master);
  CHECK(status_of(child) == 0);
}

TEST_CASE("what a terminal would obey is escaped") {
  CHECK(score::printable("plain, caf\u00e9 \u2713") == "plain, caf\u00e9 \u2713");
  CHECK(score::printable("\x1b[31m\n\x7f\t") == "\\x1b[31m\\x0a\\x7f\\x09");
  CHECK(score::printable("a\xc2\x9bz\xc2\xa0\xc2") == "a\\x9bz\xc2\xa0\xc2");
  const TemporaryDirectory directory;
  const std::string odd = directory.file("a\x1b[31mb\nc.safetensors");
  write_file(odd, read_file(sample_path()));
  const std::string out = directory.file("o\x1b.csv");
  const ChildResult run = run_score({odd, "--output", out});
  CHECK(run.exit_code == 0);
  CHECK_FALSE(has(run.out, "\x1b"));
  CHECK(has(run.out, "a\\x1b[31mb\\x0ac.safetensors: 48 rows"));
  CHECK(has(run.out, "o\\x1b.csv\n"));
  const ChildResult refused = run_score({odd, "un\nexpected\x1b"});
  CHECK(refused.exit_code == 2);
  CHECK_FALSE(has(refused.err, "\x1b"));
}
