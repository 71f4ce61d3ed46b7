// Parts of the program whose failures a whole run cannot show: what they say when something does differ.
#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <sys/wait.h>
#include <unistd.h>

#include "bilogp/runtime.hpp"
#include "runtime/score/atomic_file.hpp"
#include "runtime/score/bit_differences.hpp"
#include "runtime/score/invariance.hpp"
#include "runtime/score/invariance_calls.hpp"
#include "runtime/score/score_rows.hpp"
#include "runtime/score/sequence_table.hpp"
#include "runtime/score/text_table.hpp"
#include "runtime/score/verify.hpp"
#include "tests/tools/score_files.hpp"

namespace {

using namespace bilogp;
using namespace bilogp::test;

const score::Inputs& sample_inputs() {
  static const score::Inputs inputs = score::open_inputs({.file = sample_path()});
  return inputs;
}

// Keeps copies of every chunk.
class Collect : public score::ChunkSink {
public:
  void take(const score::Chunk& chunk) override {
    starts.push_back(chunk.first_row);
    logp.insert(logp.end(), chunk.logp.begin(), chunk.logp.end());
    lse.insert(lse.end(), chunk.lse.begin(), chunk.lse.end());
    row_state.insert(row_state.end(), chunk.row_state.begin(), chunk.row_state.end());
    grad.insert(grad.end(), chunk.grad_logits.begin(), chunk.grad_logits.end());
  }
  std::vector<std::int64_t> starts;
  std::vector<std::uint32_t> logp;
  std::vector<std::uint32_t> lse;
  std::vector<std::int32_t> row_state;
  std::vector<std::byte> grad;
};

Collect collect(const score::RowSet& rows, score::ScoreOptions options) {
  Collect all;
  const std::array<score::ChunkSink*, 1> sinks{&all};
  std::int64_t last = 0;
  score::score_rows(Runtime::get("cpu"), rows, options, sinks, [&](std::int64_t done) { last = done; });
  CHECK(last == rows.rows());
  return all;
}

} // namespace

TEST_CASE("a file scored in chunks of any size gives what it gives in one") {
  const score::RowSet rows(sample_inputs(), 20);
  score::ScoreOptions options;
  options.grad = true;
  const Collect whole = collect(rows, options);
  CHECK(whole.starts.size() == 1);
  CHECK(whole.logp == std::vector<std::uint32_t>(expected_at_temperature_1().logp.begin(),
                                                 expected_at_temperature_1().logp.begin() + 20));
  for (const std::int64_t rows_at_once : {1, 3, 7}) {
    options.chunk_bytes = rows_at_once * rows.row_bytes() + 5;
    const Collect parts = collect(rows, options);
    CHECK(parts.starts.size() == static_cast<std::size_t>((20 + rows_at_once - 1) / rows_at_once));
    CHECK(parts.logp == whole.logp);
    CHECK(parts.lse == whole.lse);
    CHECK(parts.row_state == whole.row_state);
    CHECK(parts.grad == whole.grad);
  }
}

TEST_CASE("the check against the reference finds a single wrong bit in every field") {
  const score::RowSet rows(sample_inputs(), 3);
  score::ScoreOptions options;
  options.grad = true;
  Collect right = collect(rows, options);
  const auto differences = [&](const Collect& results) {
    score::Verify verify(rows, options);
    score::Chunk chunk{0, 3, rows.logits(0, 3), results.logp, results.lse, results.row_state, results.grad};
    verify.take(chunk);
    return verify.differences();
  };
  CHECK(differences(right).bits_different == 0);
  CHECK(differences(right).rows_compared == 3);
  const auto expect_one = [&](const Collect& wrong, std::int64_t row, const std::string& field) {
    const auto found = differences(wrong);
    CHECK(found.bits_different == 1);
    REQUIRE(found.first.size() == 1);
    CHECK(found.first[0].row == row);
    CHECK(found.first[0].field == field);
  };
  Collect wrong = right;
  wrong.logp[1] ^= 1U << 31;
  expect_one(wrong, 1, "logp");
  wrong = right;
  wrong.lse[2] ^= 1U;
  expect_one(wrong, 2, "lse");
  wrong = right;
  wrong.row_state[4] ^= 0x100;
  expect_one(wrong, 2, "row_state[0]");
  wrong = right;
  wrong.row_state[1] ^= 0x40;
  expect_one(wrong, 0, "row_state[1]");
  wrong = right;
  wrong.grad[static_cast<std::size_t>(rows.row_bytes()) + 6] ^= std::byte{1};
  expect_one(wrong, 1, "grad_logits[3]");
}

TEST_CASE("differences keep the first rows and count them all") {
  score::BitDifferences differences;
  for (std::int64_t row = 0; row < 20; ++row) {
    differences.begin_row(row);
    differences.compare("logp", 7, row % 2 == 0 ? 7 : 0);
    differences.compare("lse", 1, row % 2 == 0 ? 1 : 3);
  }
  CHECK(differences.rows_compared == 20);
  CHECK(differences.rows_different == 10);
  CHECK(differences.bits_compared == 20 * 64);
  CHECK(differences.bits_different == 10 * (3 + 1));
  REQUIRE(differences.first.size() == score::BitDifferences::most_examples);
  CHECK(differences.first[1].row == 3);
}

TEST_CASE("the invariance check counts a single wrong bit of any answer") {
  score::Answers right(3);
  for (std::size_t i = 0; i < right.logp.size(); ++i) right.logp[i] = right.lse[i] = 0xc0490fdbU;
  for (std::int32_t& word : right.row_state) word = -7;
  CHECK(right.bits() == 3 * 4 * 32);
  CHECK(right.bits_different(right) == 0);
  const auto check_one = [&](const score::Answers& wrong) {
    CHECK(wrong.bits_different(right) == 1);
    CHECK(right.bits_different(wrong) == 1);
  };
  for (int bit = 0; bit < 32; ++bit) {
    for (std::size_t i = 0; i < right.logp.size(); ++i) {
      score::Answers wrong = right;
      wrong.logp[i] ^= 1U << bit;
      check_one(wrong);
      wrong = right;
      wrong.lse[i] ^= 1U << bit;
      check_one(wrong);
    }
    for (std::size_t i = 0; i < right.row_state.size(); ++i) {
      score::Answers wrong = right;
      wrong.row_state[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(wrong.row_state[i]) ^ 1U << bit);
      check_one(wrong);
    }
  }
}

TEST_CASE("one different bit anywhere spoils the invariance report") {
  score::InvarianceReport report;
  report.checks = {{"a", 100, 0, 0}, {"b", 100, 0, 0}};
  CHECK(report.all_equal());
  report.checks[1].bits_different = 1;
  CHECK_FALSE(report.all_equal());
}

TEST_CASE("a file that became shorter after it was opened is an error, not a crash") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("short.safetensors");
  write_file(path, read_file(sample_path()));
  const score::Inputs inputs = score::open_inputs({.file = path});
  const score::RowSet rows(inputs, -1);
  std::filesystem::resize_file(path, 100'000);
  CHECK_THROWS_WITH_AS(collect(rows, {}), doctest::Contains("became shorter"), Error);
}

TEST_CASE("an interrupting signal removes the file that is not finished") {
  const TemporaryDirectory directory;
  write_file(directory.file("out.csv"), "old");
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::signal(signal, SIG_DFL); // doctest has its own
      score::AtomicFile file(directory.file("out.csv"));
      file.append("half of it");
      ::raise(signal);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    CHECK(directory.names() == std::vector<std::string>{"out.csv"});
    CHECK(read_file(directory.file("out.csv")) == "old");
  }
}

TEST_CASE("numbers for people") {
  CHECK(score::grouped(0) == "0");
  CHECK(score::grouped(999) == "999");
  CHECK(score::grouped(1000) == "1,000");
  CHECK(score::grouped(-1234567) == "-1,234,567");
  CHECK(score::counted(1, "row") == "1 row");
  CHECK(score::counted(0, "row") == "0 rows");
  CHECK(score::counted(49152, "row") == "49,152 rows");
  CHECK(score::duration_text(0.0000831) == "83.1 us");
  CHECK(score::duration_text(0.0021) == "2.10 ms");
  CHECK(score::duration_text(0.31) == "0.31 s");
  score::TextTable table({"n", "<name"});
  table.add({"1", "a"});
  table.add({"100", "b"});
  CHECK(score::TextTable({"<", ""}).text().empty());
  CHECK(table.text() == "    n  name\n    1  a\n  100  b\n");
}
