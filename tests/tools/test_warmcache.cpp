// Runs the real bilogp-warmcache, each case with a store of its own.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cache/key.hpp"
#include "cache/store.hpp"
#include "tests/tools/warmcache_store.hpp"

namespace {

namespace fs = std::filesystem;
using namespace bilogp::test;
using Json = nlohmann::json;

#if defined(__aarch64__)
constexpr const char* own_level = "aarch64";
constexpr const char* foreign_level = "x86-64-v3";
#else
constexpr const char* own_level = "x86-64-v2";
constexpr const char* foreign_level = "aarch64";
#endif

} // namespace

TEST_CASE("bad usage: exit status 2, one sentence on stderr, nothing on stdout") {
  const StoreOfCase store;
  const std::vector<std::pair<std::vector<std::string>, std::string>> lines = {
      {{}, "a command is missing"},
      {{"frobnicate"}, "'frobnicate' is no command"},
      {{"list", "--frob"}, "--frob"},
      {{"warm", "--operators", "softmax"}, "expected some of logp_forward"},
      {{"warm", "--dtypes", "fp8"}, "expected some of float32"},
      {{"warm", "--id-dtypes", "int8"}, "expected some of int32"},
      {{"warm", "--vocab-sizes", "-1"}, "--vocab-sizes"},
      {{"warm", "--vocab-sizes", "2147483649"}, "2147483648"},
      {{"warm", "--vocab-sizes", "1e5"}, "1e5"},
      {{"warm", "--jobs", "0"}, "--jobs"},
      {{"warm", "--targets", "x86-64-v9"}, "cpu:x86-64-v3"},
      {{"warm", "--targets", "cpu:"}, "--targets has 'cpu:', which names no target"},
      {{"warm", "--targets", "cuda:sm_61"}, "cuda:sm_90a"},
      {{"warm", "--targets", "hip:gfx942"}, "cpu and cuda back ends"},
      {{"warm", "--numerics", "fast"}, "expected some of portable"},
  };
  for (const auto& [words, sentence] : lines) {
    CAPTURE(sentence);
    const ChildResult result = store.run(words);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(contains(result.err, sentence));
    CHECK(result.err.starts_with("bilogp-warmcache: "));
    CHECK(result.err.find('\n') == result.err.size() - 1);
  }
  CHECK_FALSE(fs::exists(store.directory()));
}

TEST_CASE("help and version go to stdout") {
  const StoreOfCase store;
  for (const char* word : {"--help", "--version"}) {
    const ChildResult result = store.run({word});
    CHECK(result.exit_code == 0);
    CHECK(result.err.empty());
    CHECK(contains(result.out, "bilogp"));
  }
  CHECK(contains(store.run({"warm", "--help"}).out, "--vocab-sizes"));
}

TEST_CASE("an empty store can be asked everything, and nothing is created") {
  const StoreOfCase store;
  CHECK(store.ask({"list"})["entries"].empty());
  CHECK(store.ask({"verify"})["checked"] == 0);
  CHECK(store.ask({"clear"})["removed"] == 0);
  const Json where = store.ask({"where"});
  CHECK(where["file"] == store.file());
  CHECK(where["reason"] == "BILOGP_CACHE_DIR");
  CHECK(where["kernels"] == 0);
  for (const char* command : {"list", "verify", "clear", "where"})
    CHECK(contains(store.run({command}).out, store.file()));
  CHECK_FALSE(fs::exists(store.directory()));
}

TEST_CASE("warm compiles once, for this machine and for one it is not") {
  const StoreOfCase store;
  const std::vector<std::string> words = {"warm",
                                          "--operators",
                                          "logp_finish,backward",
                                          "--dtypes",
                                          "bf16",
                                          "--vocab-sizes",
                                          "any,300,900",
                                          "--targets",
                                          std::string(own_level) + "," + foreign_level,
                                          "--jobs",
                                          "2"};
  const Json first = store.ask(words);
  CHECK(first["compiled"] == 4); // widths that share a kernel are one
  CHECK(first["failures"].empty());
  REQUIRE(first["kernels"].size() == 4);
  for (const Json& kernel : first["kernels"]) {
    CHECK(kernel["origin"] == "compiled");
    CHECK(kernel["stored"] == true);
    CHECK(kernel["seconds"] > 0);
    CHECK(kernel["image_bytes"] > 1000);
  }
  CHECK(first["kernels"][0]["target"] ==
        std::string("cpu:") + std::min(std::string(own_level), std::string(foreign_level)));
  const Json second = store.ask(words);
  CHECK(second["compiled"] == 0);
  REQUIRE(second["kernels"].size() == 4);
  for (const Json& kernel : second["kernels"]) CHECK(kernel["origin"] == "store");

  const ChildResult table = store.run(words);
  CHECK(table.exit_code == 0);
  CHECK(table.err.empty()); // no progress where stderr is no terminal
  CHECK(contains(table.out, "was there"));
  CHECK(contains(table.out, "0 compiled, 4 already there"));

  const Json entries = store.ask({"list"})["entries"];
  REQUIRE(entries.size() == 4);
  for (const Json& entry : entries) {
    CHECK(entry["backend"] == "cpu");
    CHECK((entry["target"] == own_level || entry["target"] == foreign_level));
    CHECK(std::string(entry["compiler"]).starts_with("clang "));
    CHECK(std::string(entry["key_text"]).starts_with("bilogp-key-1\n"));
    CHECK(std::string(entry["key_hash"]).size() == 32);
  }
  CHECK(contains(store.run({"list"}).out, "logp_backward bfloat16 int64 vocab=any portable"));
  CHECK(store.ask({"verify"})["checked"] == 4);
  CHECK(store.ask({"where"})["kernels"] == 4);
}

TEST_CASE("two at once share the work") {
  const StoreOfCase store;
  const std::vector<std::string> words = {"warm", "--operators", "finish,backward", "--id-dtypes", "all"};
  auto other = std::async(std::launch::async, [&] { return store.ask(words)["compiled"].get<int>(); });
  const int compiled = store.ask(words)["compiled"];
  CHECK(compiled + other.get() == 2 + 6);
}

TEST_CASE("verify names a kernel whose bytes changed, and the next use mends it") {
  const StoreOfCase store;
  store.warm_two();
  run_sql(store.file(), "UPDATE kernel SET payload=CAST(substr(payload,1,length(payload)-1) || x'5a' AS BLOB) "
                        "WHERE description LIKE '%int32%'");
  const Json report = store.ask({"verify"}, 1);
  CHECK(report["checked"] == 2);
  REQUIRE(report["bad"].size() == 1);
  CHECK(report["bad"][0]["description"] == "logp_finish float32 int32 vocab=any portable");
  CHECK(contains(report["bad"][0]["why"], "checksum"));
  const ChildResult table = store.run({"verify"});
  CHECK(table.exit_code == 1);
  CHECK(contains(table.out, "2 kernels checked, 1 bad"));
  CHECK(contains(table.err, "compiled again when it is needed"));
  CHECK(store.ask({"warm", "--operators", "finish", "--id-dtypes", "all"})["compiled"] == 1);
  CHECK(store.ask({"verify"})["bad"].empty());
}

TEST_CASE("verify names a payload that is no image, or not the kernel it is said to be, although its checksum holds") {
  const StoreOfCase store;
  store.warm_two();
  bilogp::cache::Store opened({store.directory(), "BILOGP_CACHE_DIR", ""}, {});
  const auto real = opened.list().at(0);
  bilogp::cache::Metadata metadata = real.metadata;
  bilogp::cache::Key key;
  std::string payload = "no image at all";
  std::string why = "not a kernel image";
  SUBCASE("garbage") {}
  SUBCASE("another kernel's image") {
    bilogp::cache::Store source({store.directory(), "BILOGP_CACHE_DIR", ""}, {});
    source.verify([&](const auto&, std::string_view bytes) {
      payload = bytes;
      return true;
    });
    metadata.description = "logp_forward float32 int64 vocab=any portable";
    why = "no entry bilogp_logp_forward";
  }
  REQUIRE(opened.put(key.add("test", "x"), metadata, payload));
  const Json report = store.ask({"verify"}, 1);
  CHECK(report["checked"] == 3);
  REQUIRE(report["bad"].size() == 1);
  CHECK(contains(report["bad"][0]["why"], why));
}

TEST_CASE("without the compiler stored kernels are served and listed, others cannot be made") {
  StoreOfCase store;
  store.warm_two();
  store.without_compiler();
  CHECK(store.ask({"list"})["entries"].size() == 2);
  CHECK(store.ask({"verify"})["bad"].empty());
  CHECK(store.ask({"where"})["kernels"] == 2);
  CHECK(store.ask({"warm", "--operators", "finish", "--id-dtypes", "all"})["compiled"] == 0);
  const Json failed = store.ask({"warm", "--operators", "backward"}, 1);
  CHECK(failed["kernels"].empty());
  REQUIRE(failed["failures"].size() == 1); // three kernels, one reason
  CHECK(contains(failed["failures"][0], "llvm-"));
  const Json doctor = store.ask({"doctor"}, 1);
  CHECK(doctor["back_ends"][0]["compiles"] == false);
  CHECK(contains(doctor["back_ends"][0]["reason"], "no-such-component.so"));
  CHECK(store.ask({"clear"})["removed"] == 2);
}

TEST_CASE("doctor says what works and why the rest does not, and leaves the store alone") {
  StoreOfCase store;
  store.options.environment["BILOGP_CUDA_DRIVER"] = "/no-such-driver.so";
  store.options.environment["BILOGP_NVRTC"] = "/no-such-nvrtc";
  const Json doctor = store.ask({"doctor"});
  CHECK_FALSE(fs::exists(store.directory()));
  CHECK(doctor["contract_id"] == "bilogp.canon-1.portable");
  REQUIRE(doctor["back_ends"].size() == 3);
  const Json& cpu = doctor["back_ends"][0];
  CHECK(cpu["compiles"] == true);
  CHECK(std::string(cpu["compiler"]).starts_with("clang "));
  CHECK(contains(cpu["component"], "libbilogp_clang.so"));
  CHECK(std::string(cpu["host_target"]).starts_with("cpu:"));
  CHECK(cpu["targets"].size() == 4);
  for (const Json& target : cpu["targets"])
    CHECK((target["runs_here"] == true) == std::string(target["missing"]).empty());
  const Json& cuda = doctor["back_ends"][1];
  CHECK(cuda["available"] == false);
  CHECK(cuda["compiles"] == false);
  CHECK(contains(cuda["driver"]["reason"], "/no-such-driver.so"));
  CHECK(contains(cuda["driver"]["reason"], "install the NVIDIA driver"));
  CHECK(contains(cuda["compiler"]["reason"], "/no-such-nvrtc"));
  CHECK(doctor["back_ends"][2]["available"] == false);
  CHECK(contains(doctor["back_ends"][2]["reason"], "not built"));
  CHECK(doctor["store"]["writable"] == true);
  CHECK(doctor["store"]["journal_mode"] == "truncate");
  CHECK(contains(store.run({"doctor"}).out, "cuda  cannot launch"));
}
