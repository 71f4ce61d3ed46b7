#include <map>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "bilogp/error.hpp"
#include "support.hpp"

using namespace store_test;

TEST_CASE("a key's text follows the grammar") {
  Key key;
  CHECK(key.text() == "bilogp-key-1\n");
  key.add("target", "x86-64-v4").add("empty", "").add("text", "two\nlines:3:x");
  CHECK(key.text() == "bilogp-key-1\ntarget:9:x86-64-v4\nempty:0:\ntext:13:two\nlines:3:x\n");
}

TEST_CASE("the hash is XXH3-128, big-endian") {
  // The published value for empty input with seed 0.
  CHECK(to_hex(hash128("")) == "99aa06d3014798d86001c324468d497f");
  CHECK(to_hex(key_of(1).hash()) == to_hex(hash128(key_of(1).text())));
}

TEST_CASE("a field name outside the grammar is refused") {
  for (const char* name : {"", "Name", "a:b", "a\n", "a b", "a-b", "\xc3\xa4"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(Key().add(name, "x"), bilogp::Error);
  }
}

TEST_CASE("a value moved over a field's boundary makes another key") {
  const std::string text = Key().add("a", "bc").add("d", "e").text();
  CHECK(text != Key().add("a", "b").add("d", "ce").text());
  CHECK(text != Key().add("ab", "c").add("d", "e").text());
  CHECK(text != Key().add("d", "e").add("a", "bc").text());
  CHECK(text != Key().add("a", "bc\nd:1:e").text());
}

TEST_CASE("random lists of fields: the text is injective") {
  // Values are made of what the grammar itself is made of, so that boundaries could be mistaken.
  std::mt19937 random(7);
  const std::string letters = "a:1\n02";
  std::map<std::string, std::vector<std::string>> seen;
  std::set<std::vector<std::string>> lists;
  for (int round = 0; round < 200'000; ++round) {
    Key key;
    std::vector<std::string> list;
    const auto fields = random() % 4;
    for (unsigned field = 0; field < fields; ++field) {
      const std::string name(1 + random() % 2, random() % 2 ? 'a' : '1');
      std::string value;
      for (auto length = random() % 5; length > 0; --length) value += letters[random() % letters.size()];
      key.add(name, value);
      list.push_back(name);
      list.push_back(value);
    }
    const auto [place, fresh] = seen.emplace(key.text(), list);
    REQUIRE(place->second == list);
    lists.insert(list);
  }
  CHECK(seen.size() == lists.size());
  CHECK(lists.size() > 50'000);
}
