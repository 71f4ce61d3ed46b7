#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "bilogp/error.hpp"
#include "runtime/backends/cpu/image.hpp"

using namespace bilogp;
using namespace bilogp::cpu;

namespace {

#if defined(__aarch64__)
constexpr std::uint32_t own = machine_aarch64, foreign = machine_x86_64;
const std::string answer_code("\x40\x05\x80\x52\xc0\x03\x5f\xd6", 8); // mov w0, #42; ret
#else
constexpr std::uint32_t own = machine_x86_64, foreign = machine_aarch64;
const std::string answer_code("\xb8\x2a\x00\x00\x00\xc3\x00\x00", 8); // mov eax, 42; ret
#endif

std::string small_image(std::uint32_t machine = own) {
  const std::vector<ImageEntry> entries = {{"answer", 0}, {"second", 8}};
  return encode_image(machine, entries, answer_code + answer_code);
}

// Either a consistent image or Error(cache); true for an image.
bool decodes(std::string_view bytes) {
  try {
    const DecodedImage image = decode_image(bytes);
    CHECK(!image.entries.empty());
    for (const ImageEntry& entry : image.entries) {
      CHECK(!entry.name.empty());
      CHECK(entry.offset < image.code.size());
    }
    CHECK(image.code.data() + image.code.size() == bytes.data() + bytes.size());
    return true;
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::cache);
    return false;
  }
}

ErrorKind kind_of_mapping(std::string_view bytes) {
  try {
    const MappedImage image(bytes);
  } catch (const Error& error) {
    return error.kind();
  }
  return {};
}

} // namespace

TEST_CASE("an image has the layout that its header gives") {
  const std::string bytes = small_image(machine_aarch64);
  REQUIRE(bytes.size() == 24 + 2 * 56 + 16);
  CHECK(bytes.substr(0, 8) == "BLGPIMG1");
  CHECK(bytes.substr(8, 16) == std::string("\xb7\0\0\0\2\0\0\0\x10\0\0\0\0\0\0\0", 16));
  CHECK(bytes.substr(24, 7) == std::string("answer\0", 7));
  CHECK(bytes[24 + 56 + 48] == 8);
}

TEST_CASE("what was encoded is decoded") {
  const std::string bytes = small_image();
  const DecodedImage image = decode_image(bytes);
  CHECK(image.machine == own);
  REQUIRE(image.entries.size() == 2);
  CHECK(image.entries[1].name == "second");
  CHECK(image.entries[1].offset == 8);
  CHECK(image.code == answer_code + answer_code);
}

TEST_CASE("images that could not be decoded are not made") {
  const auto refused = [](std::vector<ImageEntry> entries, std::string_view code) {
    CHECK_THROWS_AS(encode_image(own, entries, code), Error);
  };
  refused({}, answer_code);
  refused({{"a", 0}}, "");
  refused({{"", 0}}, answer_code);
  refused({{"a", 8}}, answer_code);
  refused({{"a", 0}, {"a", 4}}, answer_code);
  refused({{std::string(48, 'a'), 0}}, answer_code);
  refused({{std::string("a\0b", 3), 0}}, answer_code);
  const std::vector<ImageEntry> longest = {{std::string(47, 'a'), 0}};
  CHECK(decode_image(encode_image(own, longest, answer_code)).entries[0].name == longest[0].name);
}

TEST_CASE("no cut of an image is taken for one") {
  const std::string bytes = small_image();
  for (std::size_t size = 0; size < bytes.size(); ++size) CHECK(!decodes(std::string_view(bytes).substr(0, size)));
  CHECK(decodes(bytes));
  CHECK(!decodes(bytes + '\0'));
}

TEST_CASE("lying sizes, counts, offsets and names are refused") {
  const std::string good = small_image();
  const auto changed = [&](std::size_t at, const std::string& with) {
    std::string bytes = good;
    bytes.replace(at, with.size(), with);
    return bytes;
  };
  CHECK(!decodes(changed(0, "BLGPIMG2")));
  CHECK(!decodes(changed(12, std::string(4, '\0'))));   // no entries
  CHECK(!decodes(changed(12, std::string(4, '\xff')))); // 2^32 - 1 entries
  CHECK(!decodes(changed(12, "\1")));
  CHECK(!decodes(changed(16, std::string(8, '\xff')))); // sizes that wrap around
  CHECK(!decodes(changed(16, "\x0f")));
  CHECK(!decodes(changed(24, std::string(48, 'x')))); // a name without an end
  CHECK(!decodes(changed(24, std::string(1, '\0')))); // an empty name
  CHECK(!decodes(changed(24 + 47, "x")));             // bytes after a name's end
  CHECK(!decodes(changed(24, "second")));             // the same name twice
  CHECK(!decodes(changed(24 + 48, "\x10")));          // an offset at the end
  CHECK(!decodes(changed(24 + 48, std::string(8, '\xff'))));
}

TEST_CASE("random damage never does more than fail") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::string good = small_image();
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (int flips = 1 + static_cast<int>(random() % 8); flips > 0; --flips) {
      char& byte = bytes[random() % bytes.size()];
      byte = static_cast<char>(byte ^ static_cast<char>(1U << (random() % 8)));
    }
    if (random() % 4 == 0) bytes.resize(random() % (2 * bytes.size()));
    refused += decodes(bytes) ? 0 : 1;
  }
  CHECK(refused > 1000);
}

TEST_CASE("a mapped image runs, at any address") {
  const std::string bytes = small_image();
  const MappedImage first(bytes);
  MappedImage second(bytes);
  for (const MappedImage* image : {&first, static_cast<const MappedImage*>(&second)}) {
    for (const char* name : {"answer", "second"}) {
      void* address = image->entry(name);
      REQUIRE(address != nullptr);
      CHECK(reinterpret_cast<int (*)()>(address)() == 42);
    }
    CHECK(image->entry("third") == nullptr);
  }
  CHECK(first.entry("answer") != second.entry("answer"));
  void* before = second.entry("answer");
  const MappedImage moved(std::move(second));
  CHECK(moved.entry("answer") == before);
}

TEST_CASE("another machine's image and damaged ones are not mapped") {
  CHECK(kind_of_mapping(small_image(foreign)) == ErrorKind::cache);
  CHECK(kind_of_mapping(small_image().substr(1)) == ErrorKind::cache);
  CHECK(kind_of_mapping("") == ErrorKind::cache);
}
