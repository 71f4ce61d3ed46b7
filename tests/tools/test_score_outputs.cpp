// The three output formats, and what is left when one cannot be written.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <limits>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/score/safetensors.hpp"
#include "tests/tools/score_files.hpp"

namespace {

using namespace bilogp;
using namespace bilogp::test;
using nlohmann::json;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> fields;
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

std::string hex(std::uint32_t bits) {
  std::ostringstream out;
  out << std::hex << std::setw(8) << std::setfill('0') << bits;
  return out.str();
}

// Two ids a row; the second row is poisoned, the third has only one live column.
std::string awkward_file(const TemporaryDirectory& directory) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> logits{0.5F, -1.0F, 2.0F, nan, 0.0F, 1.0F, -inf, 3.0F, -inf};
  const std::vector<std::int32_t> ids{0, 2, 1, 1, 1, 0};
  const std::string path = directory.file("awkward.safetensors");
  write_file(path, safetensors_bytes({{"logits", "F32", {3, 3}, bytes_of_values(logits)},
                                      {"target_ids", "I32", {3, 2}, bytes_of_values(ids)}}));
  return path;
}

} // namespace

TEST_CASE("all three formats hold the same bits") {
  const TemporaryDirectory directory;
  const std::string input = awkward_file(directory);
  for (const char* const name : {"out.safetensors", "out.jsonl", "out.csv"})
    REQUIRE(run_score({input, "--verify", "--output", directory.file(name)}).exit_code == 0);

  const std::string file = read_file(directory.file("out.safetensors"));
  const auto parsed = score::parse_safetensors(std::as_bytes(std::span(file)));
  REQUIRE(parsed.tensors.size() == 3);
  CHECK(parsed.tensors[0].shape == std::vector<std::int64_t>{3, 2});
  const auto logp = values_of_bytes<std::uint32_t>(parsed.tensors[0].bytes);
  CHECK(parsed.tensors[1].shape == std::vector<std::int64_t>{3});
  const auto lse = values_of_bytes<std::uint32_t>(parsed.tensors[1].bytes);
  CHECK(parsed.tensors[2].dtype_name == "I32");
  CHECK(parsed.tensors[2].shape == std::vector<std::int64_t>{3, 2});
  const auto state = values_of_bytes<std::uint32_t>(parsed.tensors[2].bytes);
  CHECK(parsed.metadata.at("contract") == "bilogp.canon-1.portable");
  CHECK(parsed.metadata.at("temperature") == "1");
  CHECK(parsed.metadata.at("vocab_size") == "3");
  CHECK(logp[2] == 0x7fc00000U); // poisoned
  CHECK(logp[4] == 0x00000000U); // the only column
  CHECK(logp[5] == 0xff800000U); // a masked one

  const auto json_lines = lines_of(read_file(directory.file("out.jsonl")));
  const auto csv_lines = lines_of(read_file(directory.file("out.csv")));
  REQUIRE(json_lines.size() == 6);
  REQUIRE(csv_lines.size() == 7);
  CHECK(csv_lines[0] == "row,sequence,k,target_id,logp,logp_bits,lse,lse_bits,state_m_bits,state_E");
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    const json line = json::parse(json_lines[i]);
    CHECK(line["row"] == i / 2);
    CHECK(line["k"] == i % 2);
    CHECK(line["logp_bits"] == hex(logp[i]));
    CHECK(line["lse_bits"] == hex(lse[i / 2]));
    CHECK(line["row_state"]["m_bits"] == hex(state[i / 2 * 2]));
    CHECK(line["row_state"]["E"] == static_cast<std::int32_t>(state[i / 2 * 2 + 1]));
    const float value = std::bit_cast<float>(logp[i]);
    CHECK(line["logp"].is_null() == !std::isfinite(value));
    if (std::isfinite(value)) CHECK(line["logp"].get<float>() == value);
    const auto fields = fields_of(csv_lines[i + 1]);
    REQUIRE(fields.size() == 10);
    CHECK(fields[3] == std::to_string(line["target_id"].get<int>()));
    if (!std::isnan(value)) CHECK(std::bit_cast<std::uint32_t>(std::strtof(fields[4].c_str(), nullptr)) == logp[i]);
    CHECK(fields[5] == hex(logp[i]));
    CHECK(fields[8] == hex(state[i / 2 * 2]));
  }
}

TEST_CASE("two runs write the same bytes, whatever the threads") {
  const TemporaryDirectory directory;
  REQUIRE(run_score({sample_path(), "--threads", "1", "--output", directory.file("a.safetensors")}).exit_code == 0);
  REQUIRE(run_score({sample_path(), "--threads", "7", "--output", directory.file("b.safetensors")}).exit_code == 0);
  CHECK(read_file(directory.file("a.safetensors")) == read_file(directory.file("b.safetensors")));
}

TEST_CASE("an output replaces an older one as a whole and leaves nothing beside it") {
  const TemporaryDirectory directory;
  write_file(directory.file("out.csv"), "old");
  REQUIRE(run_score({sample_path(), "--output", directory.file("out.csv")}).exit_code == 0);
  CHECK(lines_of(read_file(directory.file("out.csv"))).size() == 49);
  CHECK(directory.names() == std::vector<std::string>{"out.csv"});
}

TEST_CASE("a full disk leaves no file under the final name") {
  const TemporaryDirectory directory;
  for (const char* const name : {"out.safetensors", "out.jsonl", "out.csv"})
    for (const long limit : {0L, 64L, 700L}) {
      CAPTURE(name);
      CAPTURE(limit);
      const ChildResult run = run_score({sample_path(), "--output", directory.file(name)}, {.largest_file = limit});
      CHECK(run.exit_code == 2);
      CHECK(run.out.empty());
      CHECK_MESSAGE(has(run.err, std::string("cannot write '") + directory.file(name) + "': File too large"), run.err);
      CHECK(directory.names().empty());
    }
  const ChildResult gradient =
      run_score({sample_path(), "--grad", "--output", directory.file("g.safetensors")}, {.largest_file = 1'000'000});
  CHECK(gradient.exit_code == 2);
  CHECK(directory.names().empty());
  // What was there before stays as it was.
  write_file(directory.file("out.csv"), "old");
  CHECK(run_score({sample_path(), "--output", directory.file("out.csv")}, {.largest_file = 700}).exit_code == 2);
  CHECK(read_file(directory.file("out.csv")) == "old");
  CHECK(directory.names() == std::vector<std::string>{"out.csv"});
}

TEST_CASE("a run that fails or finds differences leaves what it should") {
  const TemporaryDirectory directory;
  const std::string out = directory.file("out.safetensors");
  CHECK(run_score({sample_path(), "--temperature", "-1", "--output", out}).exit_code == 2);
  CHECK(directory.names().empty());
  CHECK(
      has(run_score({sample_path(), "--output", directory.file("no/such/out.csv")}).err, "No such file or directory"));
  CHECK(has(run_score({sample_path(), "--output", "/dev/null.csv/"}).err, "must end in"));
  std::filesystem::create_directory(directory.file("dir.csv"));
  CHECK(has(run_score({sample_path(), "--output", directory.file("dir.csv")}).err, "is not a regular file"));
  const std::string copy = directory.file("copy.safetensors");
  write_file(copy, read_file(sample_path()));
  CHECK(has(run_score({copy, "--output", copy}).err, "is a file that is being scored"));
  CHECK(read_file(copy) == read_file(sample_path()));
}

TEST_CASE("an output through a symbolic link is written where the link leads") {
  namespace fs = std::filesystem;
  const TemporaryDirectory directory;
  fs::create_directory(directory.file("real"));
  const std::string real = directory.file("real/out.csv");
  const std::string link = directory.file("link.csv");
  fs::create_symlink("real/out.csv", directory.file("middle"));
  fs::create_symlink(directory.file("middle"), link);
  const auto check_written = [&] {
    const ChildResult run = run_score({sample_path(), "--output", link});
    CHECK_MESSAGE(run.exit_code == 0, run.err);
    CHECK(fs::is_symlink(link));
    CHECK(fs::is_symlink(directory.file("middle")));
    CHECK(fs::is_regular_file(fs::symlink_status(real)));
    CHECK(lines_of(read_file(real)).size() == 49);
    CHECK(std::distance(fs::directory_iterator(directory.file("real")), {}) == 1);
    CHECK(directory.names().size() == 3);
  };
  check_written(); // there is no file yet
  write_file(real, "old");
  check_written();

  fs::create_symlink("loop.csv", directory.file("loop.csv"));
  CHECK(has(run_score({sample_path(), "--output", directory.file("loop.csv")}).err, "Too many levels"));
  // The file that is scored stays, whatever name it is given.
  write_file(directory.file("copy.safetensors"), read_file(sample_path()));
  fs::create_symlink("copy.safetensors", directory.file("alias.safetensors"));
  CHECK(has(run_score({directory.file("copy.safetensors"), "--output", directory.file("alias.safetensors")}).err,
            "is a file that is being scored"));
}

TEST_CASE("a file larger than the memory allowed is scored in a little of it") {
  // A gigabyte of zeros that takes no space on the disk.
  constexpr std::size_t columns = 65536, rows = 8192, logits_bytes = 2 * rows * columns;
  const TemporaryDirectory directory;
  const std::string path = directory.file("sparse.safetensors");
  const std::string header = fmt::format(R"({{"logits":{{"dtype":"BF16","shape":[{0},{1}],"data_offsets":[0,{2}]}},)"
                                         R"("target_ids":{{"dtype":"I32","shape":[{0}],"data_offsets":[{2},{3}]}}}})",
                                         rows, columns, logits_bytes, logits_bytes + 4 * rows);
  write_file(path, safetensors_bytes(header, ""));
  std::filesystem::resize_file(path, 8 + header.size() + logits_bytes + 4 * rows);
  const ChildResult run = run_score({path, "--json", "--output", directory.file("out.safetensors")});
  REQUIRE_MESSAGE(run.exit_code == 0, run.err);
  const json report = json::parse(run.out);
  CHECK(report["total"]["tokens"] == rows);
  const auto answer = reference::score(std::vector<std::uint32_t>(columns, 0), std::vector<std::int64_t>{0}, {});
  CHECK(report["total"]["mean_logp"].get<double>() == std::bit_cast<float>(answer.logp[0]));
  // Two chunks of 64 MiB, the compiler, and room: half of the file.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which take memory of their own
  CHECK(run.peak_kib < 512 * 1024);
#endif
}
