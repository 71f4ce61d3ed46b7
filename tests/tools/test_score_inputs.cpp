// Input files and options, good and bad: what the program says, and its exit status.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "tests/tools/score_files.hpp"

namespace {

using namespace bilogp;
using namespace bilogp::test;
using nlohmann::json;
using reference::Storage;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// One sentence on stderr, nothing on stdout, status 2.
void check_refused(const ChildResult& result, const std::string& part) {
  CAPTURE(result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with("bilogp-score: "));
  CHECK(has(result.err, part));
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
}

json report_of(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const ChildResult result = run_score(arguments);
  CAPTURE(result.err);
  CHECK(result.err.empty());
  REQUIRE(result.exit_code == 0);
  return json::parse(result.out);
}

// A small file: rows of 8 columns, fp32.
std::string small_file(const TemporaryDirectory& directory, std::vector<std::int64_t> shape,
                       std::vector<std::int64_t> id_shape, const std::vector<float>& logits,
                       const std::vector<std::int64_t>& ids) {
  const std::string path = directory.file("small.safetensors");
  write_file(path, safetensors_bytes({{"logits", "F32", std::move(shape), bytes_of_values(logits)},
                                      {"target_ids", "I64", std::move(id_shape), bytes_of_values(ids)}}));
  return path;
}

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 11) * 0.25F - 1.0F;
  return values;
}

} // namespace

TEST_CASE("files that cannot be read are named") {
  const TemporaryDirectory directory;
  check_refused(run_score({directory.file("none.safetensors")}), "none.safetensors': No such file or directory");
  check_refused(run_score({directory.file("")}), "not a regular file");
  check_refused(run_score({"/dev/zero"}), "'/dev/zero': it is not a regular file");
  write_file(directory.file("empty.safetensors"), "");
  check_refused(run_score({directory.file("empty.safetensors")}), "empty.safetensors': the file is empty");
  write_file(directory.file("closed.safetensors"), read_file(sample_path()));
  REQUIRE(::chmod(directory.file("closed.safetensors").c_str(), 0) == 0);
  check_refused(run_score({directory.file("closed.safetensors")}, {.obey_permissions = true}),
                "closed.safetensors': Permission denied");
  write_file(directory.file("cut.safetensors"), read_file(sample_path()).substr(0, 1'000'000));
  check_refused(run_score({directory.file("cut.safetensors")}), "it is cut short");
  write_file(directory.file("lying.safetensors"), std::string("\xff\xff\xff\x7f\0\0\0\0{}", 10));
  check_refused(run_score({directory.file("lying.safetensors")}),
                "its header claims 2147483647 bytes, but only 2 follow");
}

TEST_CASE("missing tensors: the message lists those there are") {
  check_refused(run_score({sample_path(), "--logits", "scores"}),
                "there is no tensor 'scores'; the file has 'sequence_ids' I64 [48], 'target_ids' I64 [48], 'logits' "
                "BF16 [48, 49152]");
  check_refused(run_score({sample_path(), "--target-ids", "labels"}), "there is no tensor 'labels'");
  check_refused(run_score({sample_path(), "--sequence-ids", "groups"}), "there is no tensor 'groups'");
  const TemporaryDirectory directory;
  write_file(directory.file("none.safetensors"), safetensors_bytes(std::vector<NamedTensor>{}));
  check_refused(run_score({directory.file("none.safetensors")}), "the file has no tensor at all");
}

TEST_CASE("the tensors named are the ones scored, whatever else is there") {
  const TemporaryDirectory directory;
  auto other = ramp(24);
  std::reverse(other.begin(), other.end());
  const NamedTensor scores{"scores", "F32", {3, 8}, bytes_of_values(ramp(24))};
  const NamedTensor labels{"labels", "I64", {3}, bytes_of_values(std::vector<std::int64_t>{1, 2, 3})};
  const NamedTensor logits{"logits", "F32", {3, 8}, bytes_of_values(other)};
  const NamedTensor target_ids{"target_ids", "I64", {3}, bytes_of_values(std::vector<std::int64_t>{7, 7, 7})};
  const auto answers = [&](std::vector<NamedTensor> tensors, std::vector<std::string> words) {
    write_file(directory.file("in.safetensors"), safetensors_bytes(tensors));
    words.insert(words.begin(), directory.file("in.safetensors"));
    for (const std::string& word : {std::string("--output"), directory.file("out.csv")}) words.push_back(word);
    CHECK(report_of(words)["rows"] == 3);
    return read_file(directory.file("out.csv"));
  };
  const auto alone = [&](NamedTensor rows, NamedTensor ids) {
    rows.name = "logits";
    ids.name = "target_ids";
    return answers({rows, ids}, {});
  };
  const std::vector<NamedTensor> all{logits, scores, target_ids, labels};
  CHECK(answers(all, {}) == alone(logits, target_ids));
  CHECK(answers(all, {"--logits", "scores"}) == alone(scores, target_ids));
  CHECK(answers(all, {"--target-ids", "labels"}) == alone(logits, labels));
  CHECK(answers(all, {"--logits", "scores", "--target-ids", "labels"}) == alone(scores, labels));
  CHECK(alone(scores, labels) != alone(logits, labels));
  CHECK(alone(scores, labels) != alone(scores, target_ids));
}

TEST_CASE("wrong usage is one sentence") {
  check_refused(run_score({}), "nothing to score");
  check_refused(run_score({"--no-such-option"}), "--no-such-option");
  check_refused(run_score({sample_path(), "--threads", "0"}), "--threads is 0, expected 1 to 4096");
  check_refused(run_score({sample_path(), "--threads", "many"}), "--threads");
  check_refused(run_score({sample_path(), "--limit-rows", "-3"}), "--limit-rows is -3");
  check_refused(run_score({sample_path(), "one too many"}), "one too many");
  check_refused(run_score({sample_path(), "--threads", "100000"}), "--threads is 100000, expected 1 to 4096");
  check_refused(run_score({sample_path(), "--dtype", "int8"}),
                "--dtype 'int8' is unknown, expected fp32, fp16 or bf16");
  check_refused(run_score({sample_path(), "--dtype", "fp16"}), "tensor 'logits' is BF16, but --dtype says float16");
  for (const char* const temperature : {"0", "-1", "nan", "inf", "1e-30", "1e30"}) {
    CAPTURE(temperature);
    check_refused(run_score({sample_path(), "--temperature", temperature}), "temperature");
  }
  check_refused(run_score({sample_path(), "--vocab-size", "49153"}), "vocab_size");
  check_refused(run_score({sample_path(), "--vocab-size", "0"}), "--vocab-size");
  check_refused(run_score({sample_path(), "--vocab-size", "100"}), "has the target id");
  check_refused(run_score({sample_path(), "--arch", "cpu:z80"}), "x86-64-v3");
  check_refused(run_score({sample_path(), "--arch", "abacus"}), "abacus");
  for (const char* const arch : {"cpu:", "cuda:"})
    check_refused(run_score({sample_path(), "--arch", arch}), "names nothing behind the colon");
  for (const char* const option : {"--output", "--compare", "--arch", "--logits", "--target-ids", "--dtype"})
    check_refused(run_score({sample_path(), option, ""}), std::string(option) + " is empty, expected a name");
#if defined(__x86_64__)
  check_refused(run_score({sample_path(), "--arch", "cpu:aarch64"}), "aarch64");
#endif
  check_refused(run_score({sample_path(), "--output", "results.txt"}), "must end in .safetensors, .jsonl or .csv");
  check_refused(run_score({sample_path(), "--grad", "--output", "results.csv"}),
                "gradients are written to .safetensors only");
}

TEST_CASE("help and version say what there is, on stdout") {
  const ChildResult help = run_score({"--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.err.empty());
  for (const char* const option : {"--logits", "--target-ids", "--sequence-ids", "--arch", "--temperature",
                                   "--vocab-size", "--ignore-index", "--threads", "--dtype", "--grad", "--output",
                                   "--json", "--verify", "--compare", "--invariance", "--limit-rows"})
    CHECK_MESSAGE(has(help.out, option), option);
  CHECK(has(run_score({"--version"}).out, "bilogp.canon-1.portable"));
}

TEST_CASE("ranks, shapes and dtypes that do not go together") {
  const TemporaryDirectory directory;
  const auto run = [&](const NamedTensor& logits, const NamedTensor& ids) {
    write_file(directory.file("f.safetensors"), safetensors_bytes({logits, ids}));
    return run_score({directory.file("f.safetensors")});
  };
  const std::string six_floats(24, '\0');
  const NamedTensor logits{"logits", "F32", {2, 3}, six_floats};
  const NamedTensor ids{"target_ids", "I32", {2}, std::string(8, '\0')};
  CHECK(run(logits, ids).exit_code == 0);
  check_refused(run({"logits", "F32", {6}, six_floats}, ids), "shape [6], expected [..., V] of two dimensions or more");
  check_refused(run({"logits", "U32", {2, 3}, six_floats}, ids), "are U32, expected float32, float16 or bfloat16");
  check_refused(run(logits, {"target_ids", "F32", {2}, std::string(8, '\0')}), "are F32, expected int32 or int64");
  check_refused(run(logits, {"target_ids", "I32", {3}, std::string(12, '\0')}),
                "have the shape [3], expected [2] to go with");
  check_refused(run(logits, {"target_ids", "I32", {2, 0}, ""}), "have no id for any row");
  check_refused(run(logits, {"target_ids", "I32", {2, 1, 1}, std::string(8, '\0')}), "shape [2, 1, 1]");
  check_refused(run({"logits", "F32", {2, 0}, ""}, ids), "[2, 0], expected 1 to 2^31 columns");
  check_refused(run({"logits", "F32", {0, 4294967296}, ""}, {"target_ids", "I32", {0}, ""}),
                "expected 1 to 2^31 columns");
  write_file(directory.file("f.safetensors"),
             safetensors_bytes({logits, ids, {"sequence_ids", "I32", {3}, std::string(12, '\0')}}));
  check_refused(run_score({directory.file("f.safetensors")}),
                "the sequence ids 'sequence_ids' have the shape [3], expected [2]");
}

TEST_CASE("a target id outside the vocabulary names row and id; the ignored one is none") {
  const TemporaryDirectory directory;
  const auto path = small_file(directory, {3, 8}, {3}, ramp(24), {7, -100, 8});
  check_refused(run_score({path}), "row 2 has the target id 8, expected one in [0, 8)");
  const json report = report_of({path, "--ignore-index", "8", "--limit-rows", "1"});
  CHECK(report["total"]["tokens"] == 1);
  check_refused(run_score({path, "--ignore-index", "8"}), "row 1 has the target id -100");
}

TEST_CASE("npy pairs give the answers of the sample, in all three dtypes and both ways to name them") {
  const TemporaryDirectory directory;
  const auto& expected = expected_at_temperature_1();
  write_file(directory.file("ids.npy"), npy_bytes("<i8", {4}, sample_ids(4)));
  struct Kind {
    const char* descr;
    Storage storage;
    const char* dtype;
  };
  for (const Kind kind : {Kind{"<V2", Storage::bfloat16, "bf16"}, Kind{"<u2", Storage::bfloat16, "bf16"},
                          Kind{"<f2", Storage::float16, "fp16"}, Kind{"<f4", Storage::float32, "fp32"}}) {
    CAPTURE(std::string(kind.descr));
    const std::string logits = directory.file("logits.npy");
    write_file(logits, npy_bytes(kind.descr, {4, 49152}, sample_logits(kind.storage, 4), 2));
    for (const auto& how : {std::vector<std::string>{logits}, std::vector<std::string>{"--logits", logits}}) {
      std::vector<std::string> arguments = how;
      for (const std::string& word : {std::string("--target-ids"), directory.file("ids.npy"), std::string("--dtype"),
                                      std::string(kind.dtype), std::string("--output"), directory.file("out.csv")})
        arguments.push_back(word);
      CHECK(report_of(arguments)["rows"] == 4);
      const std::string out = read_file(directory.file("out.csv"));
      for (std::size_t row = 0; row < 4; ++row) CHECK(has(out, fmt::format(",{:08x},", expected.logp[row])));
    }
  }
}

TEST_CASE("npy files that do not do") {
  const TemporaryDirectory directory;
  const std::string logits = directory.file("logits.npy");
  const std::string ids = directory.file("ids.npy");
  write_file(ids, npy_bytes("<i4", {2}, std::string(8, '\0')));
  write_file(logits, npy_bytes("<V2", {2, 3}, std::string(12, '\0')));
  check_refused(run_score({logits, "--target-ids", ids}),
                "logits.npy': it holds '<V2', 16 bits without a meaning of their own; pass --dtype bf16");
  CHECK(run_score({logits, "--target-ids", ids, "--dtype", "bf16"}).exit_code == 0);
  check_refused(run_score({logits}), "need --target-ids IDS.npy");
  check_refused(run_score({logits, "--logits", logits, "--target-ids", ids}), "leave --logits away");
  check_refused(run_score({"--target-ids", ids}), "nothing to score");
  check_refused(run_score({logits, "--target-ids", directory.file("none.npy"), "--dtype", "bf16"}), "No such file");
  check_refused(run_score({logits, "--target-ids", logits, "--dtype", "bf16"}), "pass --dtype bf16");
  write_file(logits,
             npy_bytes_with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", std::string(24, '\0')));
  check_refused(run_score({logits, "--target-ids", ids}), "Fortran order");
  write_file(logits, "");
  check_refused(run_score({logits, "--target-ids", ids}), "the file is empty");
  // Without the suffix the first bytes tell.
  write_file(directory.file("array"), npy_bytes("<f4", {2, 3}, std::string(24, '\0')));
  CHECK(run_score({directory.file("array"), "--target-ids", ids}).exit_code == 0);
}

TEST_CASE("any rank, several ids a row, no rows") {
  const TemporaryDirectory directory;
  SUBCASE("[B, T, V] has a sequence for each leading index") {
    const json report =
        report_of({small_file(directory, {2, 3, 8}, {2, 3}, ramp(48), {0, 1, 2, 3, 4, 5}), "--verify", "--grad"});
    REQUIRE(report["sequences"].size() == 2);
    CHECK(report["sequences"][1]["tokens"] == 3);
    CHECK(report["verify"]["bits_different"] == 0);
    CHECK(report["verify"]["bits"] == 6 * 32 * (4 + 8));
  }
  SUBCASE("K ids a row") {
    const auto path = small_file(directory, {2, 8}, {2, 3}, ramp(16), {0, 1, 2, 3, 4, 5});
    const json report = report_of({path, "--verify"});
    CHECK(report["ids_per_row"] == 3);
    CHECK(report["verify"]["bits"] == 2 * 32 * (3 + 3));
    check_refused(run_score({path, "--grad"}), "--grad needs one target id per row");
  }
  SUBCASE("no rows are fine") {
    const auto path = small_file(directory, {0, 8}, {0}, {}, {});
    const json report = report_of({path, "--verify", "--invariance", "--output", directory.file("out.safetensors")});
    CHECK(report["rows"] == 0);
    CHECK(report["sequences"].empty());
    check_refused(run_score({path, "--temperature", "0"}), "temperature");
  }
  SUBCASE("one column") {
    const json report =
        report_of({small_file(directory, {2, 1}, {2}, {1.5F, -3.0F}, {0, 0}), "--verify", "--grad", "--invariance"});
    CHECK(report["total"]["sum_logp"] == 0.0);
    CHECK(report["total"]["perplexity"] == 1.0);
  }
  SUBCASE("rows without a value are counted, and left out of the sum") {
    auto logits = ramp(32);
    logits[9] = std::numeric_limits<float>::quiet_NaN();
    const auto path = small_file(directory, {4, 8}, {4}, logits, {0, 1, -100, 3});
    const json report = report_of({path, "--verify", "--grad"});
    CHECK(report["total"]["nan"] == 1);
    CHECK(report["total"]["ignored"] == 1);
    CHECK(report["total"]["tokens"] == 2);
    CHECK(report["total"]["sum_logp"].is_number());
    CHECK(report["verify"]["bits_different"] == 0);
  }
}
