// The parsers of safetensors and npy headers: what they accept, and the sentence for everything that they do not.
#include <doctest/doctest.h>

#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bilogp/error.hpp"
#include "runtime/score/npy.hpp"
#include "runtime/score/safetensors.hpp"
#include "tests/tools/score_files.hpp"

namespace {

using namespace bilogp;
using namespace bilogp::test;

std::span<const std::byte> as_span(const std::string& text) {
  return std::as_bytes(std::span(text));
}

template<typename Parse> std::string sentence_of(Parse parse) {
  try {
    parse();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::invalid_argument);
    return error.what();
  }
  return "no error";
}

std::string safetensors_sentence(const std::string& file) {
  return sentence_of([&] { score::parse_safetensors(as_span(file)); });
}

std::string npy_sentence(const std::string& file, std::optional<DType> stated = {}) {
  return sentence_of([&] { score::read_npy(as_span(file), "array", stated); });
}

std::string entry(const char* name, const char* dtype, const char* shape, const char* offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}

std::string object(const std::vector<std::string>& entries) {
  return fmt::format("{{{}}}", fmt::join(entries, ","));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a safetensors file gives its tensors in the order of their data, and its metadata") {
  const std::string file =
      safetensors_bytes(object({entry("b", "I64", "[1]", "[4,12]"), entry("a", "F16", "[2,1]", "[0,4]"),
                                entry("none", "F32", "[0,7]", "[4,4]"), R"("__metadata__":{"k":"v"})"}) +
                            "   ",
                        "abcdefghijkl");
  const auto parsed = score::parse_safetensors(as_span(file));
  REQUIRE(parsed.tensors.size() == 3);
  CHECK(parsed.tensors[0].name == "a");
  CHECK(parsed.tensors[0].dtype == DType::float16);
  CHECK(parsed.tensors[0].shape == std::vector<std::int64_t>{2, 1});
  CHECK(parsed.tensors[0].bytes.size() == 4);
  CHECK(static_cast<char>(parsed.tensors[0].bytes[0]) == 'a');
  CHECK(parsed.tensors[1].name == "none");
  CHECK(parsed.tensors[1].bytes.empty());
  CHECK(parsed.tensors[2].dtype == DType::int64);
  CHECK(static_cast<char>(parsed.tensors[2].bytes[7]) == 'l');
  CHECK(parsed.metadata.at("k") == "v");
}

TEST_CASE("tensors of a dtype that bilogp does not know do not stand in the way of the others") {
  const auto parsed = score::parse_safetensors(as_span(
      safetensors_bytes(object({entry("odd", "F4", "[3]", "[0,2]"), entry("u", "U8", "[2]", "[2,4]")}), "1234")));
  REQUIRE(parsed.tensors.size() == 2);
  CHECK_FALSE(parsed.tensors[0].dtype.has_value());
  CHECK_FALSE(parsed.tensors[1].dtype.has_value());
}

TEST_CASE("a lying safetensors file is refused") {
  CHECK(has(safetensors_sentence(""), "the file is empty"));
  CHECK(has(safetensors_sentence("abc"), "only 3 bytes"));
  const std::string good = safetensors_bytes({{"a", "F32", {2}, "12345678"}});
  CHECK(safetensors_sentence(good) == "no error");
  SUBCASE("the header reaches beyond the file") {
    CHECK(has(safetensors_sentence(good.substr(0, 20)), "only 12 follow; the file is cut short"));
    CHECK(has(safetensors_sentence(std::string(8, '\xff') + "{}"),
              "claims 18446744073709551615 bytes, but only 2 follow"));
  }
  SUBCASE("cut anywhere") {
    for (std::size_t length = 0; length < good.size(); ++length)
      CHECK(safetensors_sentence(good.substr(0, length)) != "no error");
  }
  SUBCASE("data beyond the end of the file") {
    CHECK(has(safetensors_sentence(good.substr(0, good.size() - 1)), "holds only 7 bytes of data; it is cut short"));
  }
  SUBCASE("data that no tensor owns") {
    CHECK(has(safetensors_sentence(good + "x"), "1 bytes at the end of the file belong to no tensor"));
    CHECK(has(safetensors_sentence(safetensors_bytes(object({entry("a", "U8", "[1]", "[1,2]")}), "xy")),
              "1 bytes before the data of tensor 'a' belong to no tensor"));
  }
  SUBCASE("overlap") {
    const auto file =
        safetensors_bytes(object({entry("a", "U8", "[3]", "[0,3]"), entry("b", "U8", "[2]", "[2,4]")}), "wxyz");
    CHECK(has(safetensors_sentence(file), "the data of tensors 'a' and 'b' overlap"));
    const auto twice =
        safetensors_bytes(object({entry("a", "U8", "[4]", "[0,4]"), entry("b", "U8", "[4]", "[0,4]")}), "wxyz");
    CHECK(has(safetensors_sentence(twice), "overlap"));
  }
  SUBCASE("bytes that dtype and shape do not need") {
    CHECK(has(safetensors_sentence(safetensors_bytes(object({entry("a", "F32", "[3]", "[0,8]")}), "12345678")),
              "tensor 'a' has 8 bytes of data, but dtype F32 and shape [3] need 12"));
    CHECK(has(safetensors_sentence(
                  safetensors_bytes(object({entry("a", "F32", "[4611686018427387904,4]", "[0,8]")}), "12345678")),
              "need more than 2^63"));
  }
  SUBCASE("names twice") {
    CHECK(has(safetensors_sentence(safetensors_bytes(
                  object({entry("a", "U8", "[1]", "[0,1]"), entry("a", "U8", "[1]", "[1,2]")}), "xy")),
              "the name 'a' twice"));
    CHECK(has(safetensors_sentence(
                  safetensors_bytes(R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", "x")),
              "the name 'dtype' twice"));
  }
  SUBCASE("a header that is something else") {
    CHECK(has(safetensors_sentence(safetensors_bytes("[]", "")), "not a JSON object"));
    CHECK(has(safetensors_sentence(safetensors_bytes("{\"a\":", "")), "not valid JSON"));
    CHECK(has(safetensors_sentence(safetensors_bytes("{\"\xff\":1}", "")), "not valid JSON"));
    CHECK(has(safetensors_sentence(safetensors_bytes(std::string(100000, '['), "")), "nested deeper"));
    CHECK(has(safetensors_sentence(safetensors_bytes(R"({"a":1})", "")), "tensor 'a' has no dtype"));
    CHECK(has(safetensors_sentence(safetensors_bytes(R"({"a":{"dtype":"U8"}})", "")), "no list 'shape'"));
    CHECK(has(safetensors_sentence(safetensors_bytes(object({entry("a", "U8", "[-1]", "[0,1]")}), "x")),
              "not a whole number"));
    CHECK(has(safetensors_sentence(safetensors_bytes(object({entry("a", "U8", "[1.5]", "[0,1]")}), "x")),
              "not a whole number"));
    CHECK(has(safetensors_sentence(safetensors_bytes(object({entry("a", "U8", "[1]", "[1,0]")}), "x")),
              "expected [begin, end]"));
    CHECK(has(safetensors_sentence(safetensors_bytes(object({entry("a", "U8", "[1]", "[0]")}), "x")),
              "expected [begin, end]"));
    CHECK(has(safetensors_sentence(safetensors_bytes(R"({"__metadata__":{"k":1}})", "")), "not a string"));
  }
}

TEST_CASE("npy headers of all three versions are read") {
  for (const int version : {1, 2, 3}) {
    CAPTURE(version);
    const std::string bytes = npy_bytes("<f4", {1, 2}, "12345678", version); // the tensor views it
    const auto tensor = score::read_npy(as_span(bytes), "array", {});
    CHECK(tensor.dtype == DType::float32);
    CHECK(tensor.shape == std::vector<std::int64_t>{1, 2});
    CHECK(static_cast<char>(tensor.bytes[0]) == '1');
  }
  CHECK(npy_sentence(npy_bytes("<i8", {0}, "")) == "no error");
  CHECK(npy_sentence(npy_bytes_with_header("{\"shape\": (2L,), 'fortran_order': False, 'descr': '<i4'}", "12345678")) ==
        "no error");
}

TEST_CASE("bfloat16 in an npy file must be stated") {
  for (const char* const descr : {"<V2", "|V2", "<u2"}) {
    const std::string file = npy_bytes(descr, {2}, "1234");
    CHECK(has(npy_sentence(file), "pass --dtype bf16 if they are bfloat16"));
    CHECK(has(npy_sentence(file, DType::float16), "pass --dtype bf16"));
    CHECK(score::read_npy(as_span(file), "array", DType::bfloat16).dtype == DType::bfloat16);
  }
  CHECK(
      has(npy_sentence(npy_bytes("<f4", {1}, "1234"), DType::bfloat16), "'<f4' (float32), but --dtype says bfloat16"));
}

TEST_CASE("a lying npy file is refused") {
  const std::string good = npy_bytes("<f4", {2}, "12345678");
  CHECK(has(npy_sentence(""), "the file is empty"));
  CHECK(has(npy_sentence("PK\x03\x04 not npy"), "does not begin as numpy's .npy files do"));
  for (std::size_t length = 0; length < good.size(); ++length)
    CHECK(npy_sentence(good.substr(0, length)) != "no error");
  CHECK(has(npy_sentence(good.substr(0, 40)), "cut short"));
  CHECK(has(npy_sentence(good.substr(0, good.size() - 1)),
            "7 bytes of data, but dtype <f4 and shape [2] need 8; the file is cut short"));
  CHECK(has(npy_sentence(good + "x"), "the file is damaged"));
  CHECK(has(npy_sentence(npy_bytes("<f4", {2}, "12345678", 4)), "format version 4.0"));
  CHECK(has(npy_sentence(npy_bytes(">f4", {2}, "12345678")), "big-endian"));
  CHECK(has(npy_sentence(npy_bytes("<f8", {1}, "12345678")), "holds '<f8', expected <f4"));
  CHECK(has(npy_sentence(npy_bytes_with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}", "12345678")),
            "Fortran order"));
  CHECK(has(npy_sentence(
                npy_bytes_with_header("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,)}", "12345678")),
            "structured array"));
  for (const char* const header :
       {"", "{", "}", "{'descr'", "{'descr': ", "{'descr': '<f4'", "{'descr': '<f4', }",
        "{'descr': '<f4', 'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "{'other': '<f4'}"}) {
    CAPTURE(header);
    CHECK(npy_sentence(npy_bytes_with_header(header, "12345678")) != "no error");
  }
  CHECK(has(npy_sentence(npy_bytes("<f4", {INT64_MAX, INT64_MAX}, "12345678")), "need more than 2^63"));
}
