#include <algorithm>
#include <cstdio>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "cache/row.hpp"
#include "support.hpp"

using namespace store_test;

namespace {

constexpr int entries = 6;
constexpr std::size_t page = 16384;

std::string sound_file(const ScratchDirectory& scratch) {
  {
    Store store(scratch.location(), {});
    for (int number = 0; number < entries; ++number) REQUIRE(keep(store, number, 40'000));
  }
  return read_file(scratch.file());
}

void flip_bit(std::string& bytes, std::size_t random) {
  char& byte = bytes[random / 8 % bytes.size()];
  byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1U << random % 8));
}

std::size_t set_aside_in(const std::string& directory) {
  const auto names = names_in(directory);
  return static_cast<std::size_t>(std::count_if(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with("kernels-v1.db.corrupt-") && !name.ends_with("-journal");
  }));
}

// Every entry is whole or missing (`has` throws otherwise), can be put again, and there is at most one warning.
// Returns how many were missing.
int survive(const ScratchDirectory& scratch) {
  Warnings warnings;
  Store store(scratch.location(), warnings.receiver());
  int missing = 0;
  for (int number = 0; number < entries; ++number) {
    if (has(store, number, 40'000)) continue;
    ++missing;
    CHECK(keep(store, number, 40'000));
  }
  // What was found before the damage was may have gone with the file that was set aside.
  for (int number = 0; number < entries; ++number)
    CHECK((has(store, number, 40'000) || (keep(store, number, 40'000) && has(store, number, 40'000))));
  CHECK(warnings.count() <= 1);
  CHECK(set_aside_in(scratch.store()) <= 1);
  return missing;
}

} // namespace

TEST_CASE("every sampled bit of a row is covered by the checksum") {
  const std::string text = key_of(1).text();
  const Metadata metadata = metadata_of(1);
  const std::string payload = payload_of(1);
  const Row row = make_row(text, metadata, payload, 1'700'000'000);
  const Hash128 sum = row_checksum(row);
  std::mt19937 random(11);
  int undetected = 0;
  const auto check_view = [&](std::string_view Row::* column, unsigned rounds) {
    for (unsigned round = 0; round < rounds; ++round) {
      std::string changed(row.*column);
      flip_bit(changed, random());
      Row other = row;
      other.*column = changed;
      undetected += row_checksum(other) == sum;
    }
  };
  check_view(&Row::payload, 20'000);
  for (auto column : {&Row::key_text, &Row::backend, &Row::target, &Row::compiler, &Row::description})
    check_view(column, 500);
  for (int bit = 0; bit < 64; ++bit)
    for (auto column : {&Row::compile_microseconds, &Row::created_unix}) {
      Row other = row;
      other.*column ^= std::int64_t(std::uint64_t{1} << bit);
      undetected += row_checksum(other) == sum;
    }
  Row moved = row; // the same bytes, cut elsewhere
  moved.backend = "tes";
  moved.target = "tx86-64-v3";
  undetected += row_checksum(moved) == sum;
  CHECK(undetected == 0);
}

TEST_CASE("a flipped bit of a stored payload or column is a miss, and the row is dropped") {
  const ScratchDirectory scratch;
  Store store(scratch.location(), {});
  std::mt19937 random(12);
  const std::string payload = payload_of(1);
  for (int round = 0; round < 400; ++round) {
    REQUIRE(keep(store, 1));
    const std::size_t place = random() % payload.size();
    const int changed = static_cast<unsigned char>(payload[place]) ^ (1 << random() % 8);
    run_sql(scratch.file(), fmt::format("UPDATE kernel SET payload=CAST(substr(payload,1,{}) || x'{:02x}' || "
                                        "substr(payload,{}) AS BLOB)",
                                        place, changed, place + 2));
    REQUIRE(ask_sql(scratch.file(), "SELECT length(payload) FROM kernel") == 12'000);
    REQUIRE_FALSE(store.get(key_of(1)));
    REQUIRE(ask_sql(scratch.file(), "SELECT count(*) FROM kernel") == 0);
  }
  for (const char* change :
       {"target='x86-64-v4'", "compiler='clang 19.1.8'", "backend='cuda'", "description=''",
        "compile_microseconds=compile_microseconds+1", "created=created-1", "key_text=key_text||'x'", "checksum=x''",
        "checksum=zeroblob(16)", "payload=x''", "payload='text'", "created='soon'"}) {
    CAPTURE(change);
    REQUIRE(keep(store, 1));
    run_sql(scratch.file(), fmt::format("UPDATE kernel SET {}", change));
    CHECK_FALSE(store.get(key_of(1)));
    CHECK(store.list().empty());
  }
}

TEST_CASE("random bits of the file flipped: right answers or misses, never a wrong byte") {
  const ScratchDirectory scratch;
  const std::string sound = sound_file(scratch);
  std::mt19937 random(13);
  int missing = 0;
  for (int round = 0; round < 150; ++round) {
    CAPTURE(round);
    std::string bytes = sound;
    for (int flips = 0; flips < 8; ++flips) flip_bit(bytes, random());
    write_file(scratch.file(), bytes);
    missing += survive(scratch);
  }
  CHECK(missing > 150);
}

TEST_CASE("a zeroed page anywhere") {
  const ScratchDirectory scratch;
  const std::string sound = sound_file(scratch);
  int missing = 0;
  for (std::size_t start = 0; start < sound.size(); start += page) {
    CAPTURE(start);
    std::string bytes = sound;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(start), page, '\0');
    write_file(scratch.file(), bytes);
    missing += survive(scratch);
  }
  CHECK(missing >= entries);
}

TEST_CASE("a file cut off at any page, or in the middle of one") {
  const ScratchDirectory scratch;
  const std::string sound = sound_file(scratch);
  for (std::size_t length = 0; length < sound.size(); length += page / 2) {
    CAPTURE(length);
    write_file(scratch.file(), std::string_view(sound).substr(0, length));
    CHECK(survive(scratch) > 0);
  }
}

TEST_CASE("garbage in place of the file is set aside, once, with one warning") {
  const ScratchDirectory scratch;
  sound_file(scratch);
  for (int round = 0; round < 3; ++round) {
    const std::string garbage = payload_of(99 + round, 50'000);
    write_file(scratch.file(), garbage);
    Warnings warnings;
    Store store(scratch.location(), warnings.receiver());
    CHECK_FALSE(has(store, 0));
    CHECK(keep(store, 0));
    CHECK(has(store, 0));
    CHECK(warnings.count() == 1);
    CHECK(warnings.text().find("set aside") != std::string::npos);
    CHECK(set_aside_in(scratch.store()) == 1);
    for (const std::string& name : names_in(scratch.store()))
      if (name.find(".corrupt-") != std::string::npos && !name.ends_with("-journal"))
        CHECK(read_file(scratch.store() + '/' + name) == garbage);
  }
}

TEST_CASE("a store without its table, or with another one, is set aside") {
  const ScratchDirectory scratch;
  for (const char* change : {"DROP TABLE kernel", "ALTER TABLE kernel DROP COLUMN created",
                             "ALTER TABLE kernel RENAME COLUMN payload TO other"}) {
    CAPTURE(change);
    {
      CHECK(keep_once(scratch.location(), 0));
    }
    run_sql(scratch.file(), change);
    Warnings warnings;
    Store store(scratch.location(), warnings.receiver());
    CHECK(keep(store, 1));
    CHECK(has(store, 1));
    CAPTURE(warnings.text());
    CHECK(warnings.count() == 1);
  }
}

TEST_CASE("two processes find the damage at once: one sets it aside, both go on") {
  const ScratchDirectory scratch;
  sound_file(scratch);
  for (int round = 0; round < 20; ++round) {
    write_file(scratch.file(), payload_of(7, 50'000));
    std::vector<pid_t> children;
    for (int child = 0; child < 4; ++child)
      children.push_back(start_child([&, child] {
        Warnings warnings;
        Store store(scratch.location(), warnings.receiver());
        const bool good = !has(store, 50 + child) && keep(store, 50 + child) && has(store, 50 + child);
        if (!good) std::fprintf(stderr, "in a child: %s\n", warnings.text().c_str());
        return good;
      }));
    for (const pid_t child : children) CHECK(succeeded(child));
    Store store(scratch.location(), {});
    for (int child = 0; child < 4; ++child) CHECK(has(store, 50 + child));
  }
}

TEST_CASE("tools say what is wrong with a damaged store, and clear mends it") {
  const ScratchDirectory scratch;
  sound_file(scratch);
  write_file(scratch.file(), payload_of(99, 50'000));
  Store store(scratch.location(), {});
  CHECK_THROWS_AS(store.list(), bilogp::Error);
  CHECK_THROWS_WITH_AS(store.verify({}), doctest::Contains("is damaged"), bilogp::Error);
  CHECK(store.clear() == 0);
  CHECK(store.list().empty());
  CHECK(set_aside_in(scratch.store()) == 0);
  CHECK(keep(store, 1));
}
