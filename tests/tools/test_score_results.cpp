// The real sample scored by the program: answers, report, comparisons, the invariance check.
#include <doctest/doctest.h>

#include <bit>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/score/safetensors.hpp"
#include "tests/reference/compare.hpp"
#include "tests/reference/row_generators.hpp"
#include "tests/tools/score_files.hpp"

namespace {

using namespace bilogp;
using namespace bilogp::test;
using nlohmann::json;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Results {
  std::vector<std::uint32_t> logp;
  std::vector<std::uint32_t> lse;
  std::vector<std::int32_t> row_state;
  std::vector<std::uint16_t> grad_logits;
};

Results read_results(const std::string& path) {
  const std::string file = read_file(path);
  const auto parsed = score::parse_safetensors(std::as_bytes(std::span(file)));
  Results results;
  for (const auto& tensor : parsed.tensors) {
    if (tensor.name == "logp") results.logp = values_of_bytes<std::uint32_t>(tensor.bytes);
    if (tensor.name == "lse") results.lse = values_of_bytes<std::uint32_t>(tensor.bytes);
    if (tensor.name == "row_state") results.row_state = values_of_bytes<std::int32_t>(tensor.bytes);
    if (tensor.name == "grad_logits") results.grad_logits = values_of_bytes<std::uint16_t>(tensor.bytes);
  }
  return results;
}

} // namespace

TEST_CASE("the sample's answers, at both temperatures, on every level asked for") {
  const TemporaryDirectory directory;
  const std::string out = directory.file("out.safetensors");
  for (const auto& expected : reference::expected_answers())
    for (const char* const arch : {"auto", "cpu", "cpu:x86-64-v2"}) {
#if !defined(__x86_64__)
      if (std::string(arch) == "cpu:x86-64-v2") continue;
#endif
      CAPTURE(expected.name);
      CAPTURE(arch);
      const ChildResult run = run_score(
          {sample_path(), "--arch", arch, "--temperature", std::to_string(expected.temperature), "--output", out});
      REQUIRE_MESSAGE(run.exit_code == 0, run.err);
      const Results results = read_results(out);
      CHECK(reference::compare_bits(results.logp, expected.logp).report == "");
      CHECK(reference::compare_bits(results.lse, expected.lse).report == "");
      REQUIRE(results.row_state.size() == 2 * expected.states.size());
      for (std::size_t row = 0; row < expected.states.size(); ++row) {
        CHECK(static_cast<std::uint32_t>(results.row_state[2 * row]) == expected.states[row].m_bits);
        CHECK(results.row_state[2 * row + 1] == expected.states[row].E);
      }
    }
}

TEST_CASE("gradients of the sample, written and verified") {
  const TemporaryDirectory directory;
  const std::string out = directory.file("out.safetensors");
  const ChildResult run =
      run_score({sample_path(), "--grad", "--limit-rows", "6", "--output", out, "--verify", "--json"});
  REQUIRE_MESSAGE(run.exit_code == 0, run.err);
  const json report = json::parse(run.out);
  CHECK(report["verify"]["fields"] == json({"logp", "lse", "row_state", "grad_logits"}));
  CHECK(report["verify"]["bits"] == 6 * (4 * 32 + 49152 * 16));
  CHECK(report["verify"]["bits_different"] == 0);
  const Results results = read_results(out);
  REQUIRE(results.grad_logits.size() == 6 * 49152);
  const auto& sample = reference::sample_rows();
  for (std::size_t row = 0; row < 6; ++row) {
    const auto gradient =
        reference::gradient(sample.row(static_cast<std::int64_t>(row)), sample.target_ids[row], 1.0F, {});
    const auto expected = reference::to_16_bits(reference::Storage::bfloat16, gradient);
    const std::span got(results.grad_logits.data() + row * expected.size(), expected.size());
    CHECK(reference::compare_bits<std::uint16_t>(reference::Storage::bfloat16, got, expected).report == "");
  }
}

TEST_CASE("the report says what was scored, by which kernel, and where that came from") {
  const TemporaryDirectory store;
  const ChildOptions own_store{.environment = {{"BILOGP_CACHE_DIR", store.file("store")}}};
  const ChildResult cold = run_score({sample_path()}, own_store);
  REQUIRE_MESSAGE(cold.exit_code == 0, cold.err);
  CHECK(has(cold.out, "compiled in "));
  const ChildResult text = run_score({sample_path()}, own_store);
  CHECK(text.err.empty());
  for (const char* const part : {"48 rows of 49,152 bfloat16 logits", "bilogp.canon-1.portable on cpu:", "perplexity",
                                 "logp_forward", "clang", "store, ", "rows/s", "GB/s"})
    CHECK_MESSAGE(has(text.out, part), part);

  const ChildResult run = run_score({sample_path(), "--json"}, own_store);
  CHECK(run.err.empty());
  const json report = json::parse(run.out);
  CHECK(report["contract"] == "bilogp.canon-1.portable");
  CHECK(report["rows"] == 48);
  CHECK(report["shape"] == json({48, 49152}));
  REQUIRE(report["sequences"].size() == 4);
  double sum = 0;
  for (std::size_t row = 0; row < 12; ++row) sum += std::bit_cast<float>(expected_at_temperature_1().logp[12 + row]);
  CHECK(report["sequences"][1]["sequence"] == reference::sample_rows().sequence_ids[12]);
  CHECK(report["sequences"][1]["tokens"] == 12);
  CHECK(report["sequences"][1]["sum_logp"] == sum);
  CHECK(report["total"]["tokens"] == 48);
  REQUIRE(report["kernels"].size() == 1);
  CHECK(report["kernels"][0]["operator"] == "logp_forward");
  CHECK(report["kernels"][0]["vocab_size"] == 49152);
  CHECK(report["kernels"][0]["origin"] == "store");
  CHECK(report["forward"]["rows_per_second"] > 0);
}

TEST_CASE("--compare: equal runs, a flipped bit, and files that cannot be compared") {
  const TemporaryDirectory directory;
  const std::string mine = directory.file("mine.safetensors");
  REQUIRE(run_score({sample_path(), "--output", mine}).exit_code == 0);

  const ChildResult equal = run_score({sample_path(), "--threads", "1", "--compare", mine});
  CHECK(equal.exit_code == 0);
  CHECK(has(equal.out, "0 of 6,144 bits differ from"));

  // Bit 0 of the logp of row 5 and two bits of the E of row 7: behind 48 floats each of logp and lse, in pairs.
  std::string changed = read_file(mine);
  const std::size_t data = 8 + static_cast<unsigned char>(changed[0]) + 256UL * static_cast<unsigned char>(changed[1]);
  const std::size_t logp_of_row_5 = data + 20;
  changed[logp_of_row_5] = static_cast<char>(changed[logp_of_row_5] ^ 1);
  const std::size_t e_of_row_7 = data + 384 + 60;
  changed[e_of_row_7] = static_cast<char>(changed[e_of_row_7] ^ 3);
  const std::string other = directory.file("other.safetensors");
  write_file(other, changed);
  const ChildResult differs = run_score({sample_path(), "--compare", other, "--json"});
  CHECK(differs.exit_code == 1);
  const json compare = json::parse(differs.out)["compare"];
  CHECK(compare["bits_different"] == 3);
  CHECK(compare["rows_different"] == 2);
  CHECK(compare["first"][0]["row"] == 5);
  CHECK(compare["first"][0]["field"] == "logp");
  const std::uint32_t bits = expected_at_temperature_1().logp[5];
  CHECK(compare["first"][0]["here"] == fmt::format("{:08x}", bits));
  CHECK(compare["first"][0]["there"] == fmt::format("{:08x}", bits ^ 1));
  CHECK(compare["first"][1]["field"] == "row_state[1]");
  CHECK(has(run_score({sample_path(), "--compare", other}).out,
            "3 of 6,144 bits differ from " + other + ", in 2 of 48 rows"));

  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& part) {
    const ChildResult run = run_score(arguments);
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    CHECK_MESSAGE(has(run.err, part), run.err);
  };
  refused({sample_path(), "--compare", mine, "--temperature", "0.7"},
          "was made with temperature '1', this run has 0.7");
  refused({sample_path(), "--compare", mine, "--limit-rows", "7"},
          "logp is F32 [48], expected float32 with 7 elements");
  refused({sample_path(), "--compare", sample_path()}, "there is no tensor 'logp'");
  refused({sample_path(), "--compare", directory.file("none.safetensors")}, "No such file");
}

TEST_CASE("--compare warns of a file that does not say what its bits depend on") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("other.safetensors");
  std::string logp = bytes_of_values(expected_at_temperature_1().logp);
  const auto with_metadata = [&](const std::string& metadata) {
    write_file(path, safetensors_bytes(
                         R"({)" + metadata + R"("logp":{"dtype":"F32","shape":[48],"data_offsets":[0,192]}})", logp));
    return run_score({sample_path(), "--compare", path, "--json"});
  };
  const ChildResult bare = with_metadata("");
  CHECK(bare.exit_code == 0);
  CHECK(bare.err.starts_with("bilogp-score: warning: "));
  CHECK(has(bare.err, "does not say its contract, ignore_index, temperature, vocab_size; "));
  CHECK(bare.err.find('\n') == bare.err.size() - 1);
  CHECK(json::parse(bare.out)["compare"]["bits_different"] == 0);
  CHECK(has(json::parse(bare.out)["compare"]["warning"], "does not say its contract"));

  const std::string rest = R"("temperature":"1","vocab_size":"49152","ignore_index":"-100")";
  CHECK(has(with_metadata(R"("__metadata__":{)" + rest + "},").err, "does not say its contract; "));
  const ChildResult full = with_metadata(R"("__metadata__":{"contract":"bilogp.canon-1.portable",)" + rest + "},");
  CHECK(full.exit_code == 0);
  CHECK(full.err.empty());
  CHECK_FALSE(json::parse(full.out)["compare"].contains("warning"));
  const ChildResult foreign = with_metadata(R"("__metadata__":{"contract":"bilogp.canon-0.portable",)" + rest + "},");
  CHECK(foreign.exit_code == 2);
  CHECK(has(foreign.err, "was made with contract 'bilogp.canon-0.portable'"));

  logp[3] = static_cast<char>(logp[3] ^ 1);
  const ChildResult differs = with_metadata("");
  CHECK(differs.exit_code == 1);
  CHECK(has(differs.err, "warning: "));
}

TEST_CASE("--vocab-size: the columns behind it change nothing") {
  const TemporaryDirectory directory;
  const std::string out = directory.file("out.safetensors");
  constexpr std::int64_t used = 49000, rows = 6;
  const ChildResult run = run_score(
      {sample_path(), "--vocab-size", "49000", "--limit-rows", "6", "--grad", "--verify", "--json", "--output", out});
  REQUIRE_MESSAGE(run.exit_code == 0, run.err);
  CHECK(json::parse(run.out)["verify"]["bits_different"] == 0);
  CHECK(json::parse(run.out)["vocab_size"] == used);
  const Results results = read_results(out);
  REQUIRE(results.logp.size() == rows);
  bool any_column_mattered = false;
  for (std::size_t row = 0; row < rows; ++row) {
    // As if the file had no such columns.
    auto logits = reference::sample_rows().row(static_cast<std::int64_t>(row));
    logits.resize(used);
    const std::vector<std::int64_t> ids{reference::sample_rows().target_ids[row]};
    const reference::RowAnswer answer = reference::score(logits, ids, {});
    CHECK(results.logp[row] == answer.logp[0]);
    CHECK(results.lse[row] == answer.lse);
    CHECK(static_cast<std::uint32_t>(results.row_state[2 * row]) == answer.state.m_bits);
    CHECK(results.row_state[2 * row + 1] == answer.state.E);
    any_column_mattered = any_column_mattered || answer.lse != expected_at_temperature_1().lse[row] ||
                          answer.state.m_bits != expected_at_temperature_1().states[row].m_bits;
  }
  CHECK(any_column_mattered);
}

TEST_CASE("--vocab-size: the hand-made rows with NaN and large values behind it") {
  const TemporaryDirectory directory;
  int scored = 0;
  for (const reference::HandCase& hand_case : reference::hand_cases()) {
    const std::int64_t used = hand_case.options.vocab_size;
    if (used < 0 || used == static_cast<std::int64_t>(hand_case.logits.size())) continue;
    CAPTURE(hand_case.name);
    const std::string path = directory.file("row.safetensors");
    const std::string out = directory.file("out.safetensors");
    write_file(path, safetensors_bytes({{"logits",
                                         "F32",
                                         {1, static_cast<std::int64_t>(hand_case.logits.size())},
                                         bytes_of_values(hand_case.logits)},
                                        {"target_ids", "I64", {1}, bytes_of_values(std::vector{hand_case.target})}}));
    const ChildResult run =
        run_score({path, "--vocab-size", std::to_string(used), "--temperature",
                   fmt::format("{}", hand_case.options.temperature), "--grad", "--verify", "--output", out});
    if (hand_case.target >= used) {
      CHECK(run.exit_code == 2);
      CHECK(has(run.err, fmt::format("row 0 has the target id {}, expected one in [0, {})", hand_case.target, used)));
      continue;
    }
    REQUIRE_MESSAGE(run.exit_code == 0, run.err);
    CHECK(has(run.out, fmt::format(", vocabulary {}\n", used)));
    const Results results = read_results(out);
    CHECK(results.logp == std::vector{hand_case.logp});
    CHECK(results.lse == std::vector{hand_case.lse});
    ++scored;
  }
  CHECK(scored > 0);
}

TEST_CASE("--compare looks at gradients where both have them") {
  const TemporaryDirectory directory;
  const std::string mine = directory.file("mine.safetensors");
  REQUIRE(run_score({sample_path(), "--limit-rows", "3", "--grad", "--output", mine}).exit_code == 0);
  CHECK(run_score({sample_path(), "--limit-rows", "3", "--grad", "--compare", mine}).exit_code == 0);
  std::string changed = read_file(mine);
  changed.back() = static_cast<char>(changed.back() ^ 0x10); // the last column's high byte
  write_file(mine, changed);
  const ChildResult run = run_score({sample_path(), "--limit-rows", "3", "--grad", "--compare", mine, "--json"});
  CHECK(run.exit_code == 1);
  CHECK(json::parse(run.out)["compare"]["first"][0]["field"] == "grad_logits[49151]");
  CHECK(json::parse(run.out)["compare"]["first"][0]["row"] == 2);
  CHECK(run_score({sample_path(), "--limit-rows", "3", "--compare", mine}).exit_code == 0);
}

TEST_CASE("--invariance: no bit differs, and plain float32 sums do") {
  const ChildResult run = run_score({sample_path(), "--invariance", "--json"});
  REQUIRE_MESSAGE(run.exit_code == 0, run.err);
  const json invariance = json::parse(run.out)["invariance"];
  CHECK(invariance["rows"] == 48);
  CHECK(invariance["checks"].size() >= 17);
  for (const json& check : invariance["checks"]) {
    CAPTURE(check["name"].get<std::string>());
    CHECK(check["bits"] == 48 * 4 * 32);
    CHECK(check["bits_different"] == 0);
  }
  CHECK(invariance["plain_float32"]["rows"] == 48);
  CHECK(invariance["plain_float32"]["simple_against_8_partial_sums"] > 0);
  CHECK(invariance["plain_float32"]["simple_against_bilogp"] > 0);
  const ChildResult text =
      run_score({sample_path(), "--invariance", "--limit-rows", "5", "--temperature", "0.7", "--vocab-size", "49000"});
  CHECK_MESSAGE(text.exit_code == 0, text.err);
  for (const char* const part : {"shuffled", "in batches of 7", "misaligned", "split over 7 shards", "on 2 threads"})
    CHECK_MESSAGE(has(text.out, part), part);
}
