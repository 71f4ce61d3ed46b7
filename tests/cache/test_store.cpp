#include <chrono>
#include <cstdlib>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cache/row.hpp"
#include "support.hpp"

using namespace store_test;

TEST_CASE("entries come back whole, from this store and from another") {
  const ScratchDirectory scratch;
  Warnings warnings;
  Store store(scratch.location(), warnings.receiver());
  CHECK_FALSE(exists(scratch.store()));
  CHECK_FALSE(has(store, 1));
  CHECK_FALSE(exists(scratch.store())); // a miss makes nothing
  for (int number = 0; number < 20; ++number) CHECK(keep(store, number));
  Store other(scratch.location(), warnings.receiver());
  for (int number = 0; number < 20; ++number) {
    CHECK(has(store, number));
    CHECK(has(other, number));
  }
  CHECK_FALSE(has(other, 20));
  CHECK(store.file() == scratch.file());
  CHECK(store.file_bytes() > 20 * 12'000);
  CHECK(warnings.count() == 0);
}

TEST_CASE("payloads of all sizes, empty to 3 MB, and metadata with any bytes") {
  const ScratchDirectory scratch;
  Store store(scratch.location(), {});
  int number = 0;
  for (const std::size_t bytes : {0u, 1u, 100u, 16'383u, 16'384u, 16'385u, 200'000u, 3'000'000u}) {
    CHECK(keep(store, ++number, bytes));
    CHECK(has(store, number, bytes));
  }
  const Metadata odd{"", "t\nx'", "\"", std::string(5000, 'd'), -1};
  CHECK(store.put(key_of(100), odd, "p"));
  const Entry entry = Store(scratch.location(), {}).get(key_of(100)).value_or(Entry());
  CHECK(entry.payload == "p");
  CHECK(entry.metadata.target == odd.target);
  CHECK(entry.metadata.description == odd.description);
  CHECK(entry.metadata.compile_microseconds == -1);
}

TEST_CASE("put replaces, erase removes") {
  const ScratchDirectory scratch;
  Store store(scratch.location(), {});
  CHECK(store.put(key_of(1), metadata_of(1), "first"));
  CHECK(store.put(key_of(1), metadata_of(1), "second"));
  CHECK(store.get(key_of(1)).value_or(Entry()).payload == "second");
  CHECK(store.list().size() == 1);
  store.erase(key_of(1));
  store.erase(key_of(2));
  CHECK_FALSE(store.get(key_of(1)));
}

TEST_CASE("the file is marked as a store, has large pages and leaves no write-ahead log") {
  const ScratchDirectory scratch;
  {
    CHECK(keep_once(scratch.location(), 1));
  }
  CHECK(ask_sql(scratch.file(), "PRAGMA application_id") == 0x424C4750);
  CHECK(ask_sql(scratch.file(), "PRAGMA user_version") == 1);
  CHECK(ask_sql(scratch.file(), "PRAGMA page_size") == 16384);
  CHECK(ask_sql(scratch.file(), "SELECT count(*) FROM kernel") == 1);
  CHECK(read_file(scratch.file()).substr(18, 2) == std::string("\1\1", 2)); // no WAL
  CHECK(names_in(scratch.store()) == std::vector<std::string>{"kernels-v1.db", "kernels-v1.db-journal"});
  CHECK(read_file(scratch.file() + "-journal").empty()); // truncated
}

TEST_CASE("an entry under the same hash but with another text is a miss, and put replaces it") {
  const ScratchDirectory scratch;
  Store store(scratch.location(), {});
  CHECK(keep(store, 1));
  CHECK(keep(store, 2));
  // The row of key 2, whole by its checksum, now stands under the hash of key 1.
  const std::string hash = to_hex(key_of(1).hash());
  run_sql(scratch.file(), fmt::format("DELETE FROM kernel WHERE key=x'{0}'; UPDATE kernel SET key=x'{0}'", hash));
  CHECK_FALSE(store.get(key_of(1)));
  CHECK(store.list().size() == 1);
  CHECK(keep(store, 1));
  CHECK(has(store, 1));
  CHECK(store.list().size() == 1);
}

TEST_CASE("list, verify and clear") {
  const ScratchDirectory scratch;
  Store store(scratch.location(), {});
  CHECK(store.list().empty());
  CHECK(store.verify({}).checked == 0);
  CHECK(store.clear() == 0);
  CHECK_FALSE(exists(scratch.store()));
  for (int number = 0; number < 30; ++number) keep(store, number);
  const auto entries = store.list();
  REQUIRE(entries.size() == 30);
  CHECK(entries[3].key_text == key_of(3).text());
  CHECK(entries[3].key_hash == to_hex(key_of(3).hash()));
  CHECK(entries[3].metadata.description == "kernel 3");
  CHECK(entries[3].payload_bytes == 12'000);
  CHECK(std::abs(entries[3].created_unix - static_cast<std::int64_t>(std::time(nullptr))) < 60);

  const auto refuses_5 = [](const ListedEntry& entry, std::string_view payload) {
    CHECK(payload.size() == 12'000);
    return entry.metadata.description != "kernel 5";
  };
  run_sql(scratch.file(), "UPDATE kernel SET target='x86-64-v4' WHERE description='kernel 7'");
  const VerifyReport report = store.verify(refuses_5);
  CHECK(report.checked == 30);
  REQUIRE(report.bad.size() == 2);
  CHECK(report.bad[0].metadata.description == "kernel 5");
  CHECK(report.bad[1].metadata.description == "kernel 7");

  const auto before = store.file_bytes();
  write_file(scratch.file() + ".corrupt-1", "x");
  CHECK(store.clear() == 30);
  CHECK(store.list().empty());
  CHECK(store.file_bytes() < before / 5);
  CHECK_FALSE(exists(scratch.file() + ".corrupt-1"));
  CHECK(keep(store, 1));
  CHECK(has(store, 1));
}

TEST_CASE("memory-only stores keep, list, verify and clear") {
  Warnings warnings;
  Store store({"", "BILOGP_CACHE_DIR", ""}, warnings.receiver());
  CHECK_FALSE(has(store, 1));
  CHECK(keep(store, 1));
  CHECK(keep(store, 2));
  CHECK(has(store, 1));
  CHECK(store.list().size() == 2);
  CHECK(store.verify([](const ListedEntry&, std::string_view) { return false; }).bad.size() == 2);
  store.erase(key_of(1));
  CHECK_FALSE(has(store, 1));
  CHECK_FALSE(store.lock(key_of(1)).held());
  CHECK(store.file() == "");
  CHECK(store.file_bytes() == 0);
  CHECK(store.clear() == 1);
  CHECK(warnings.count() == 0);
}

namespace {

// A child, because the limit is read from the environment.
bool with_limit(const char* limit, const std::function<bool()>& work) {
  return in_child([&] {
    ::setenv("BILOGP_CACHE_MAX_BYTES", limit, 1);
    return work();
  });
}

} // namespace

TEST_CASE("the file stays below its limit and the entries put first go") {
  const ScratchDirectory scratch;
  CHECK(with_limit("2000000", [&] {
    Store store(scratch.location(), {});
    for (int number = 0; number < 200; ++number)
      if (!keep(store, number, 30'000) || store.file_bytes() > 2'000'000 || !has(store, number, 30'000)) return false;
    int kept = 0;
    for (int number = 0; number < 200; ++number) {
      const bool there = has(store, number, 30'000);
      if (kept > 0 && !there) return false; // the kept ones are the last ones
      kept += there ? 1 : 0;
    }
    // One too large is kept in the process and throws nothing else out.
    const bool refused = !keep(store, 1000, 3'000'000);
    return kept > 20 && refused && has(store, 199, 30'000) && !Store(scratch.location(), {}).get(key_of(1000));
  }));
  CHECK(with_limit("500000", [] {
    Store store({"", "BILOGP_CACHE_DIR", ""}, {});
    for (int number = 0; number < 100; ++number) keep(store, number);
    return !has(store, 0) && has(store, 99) && has(store, 70) && store.list().size() < 42;
  }));
}

TEST_CASE("a limit that makes no sense is one warning") {
  const ScratchDirectory scratch;
  for (const char* limit : {"0", "-5", "many", "1e6", "99999999999999999999"}) {
    CAPTURE(limit);
    CHECK(with_limit(limit, [&] {
      Warnings warnings;
      Store store(scratch.location(), warnings.receiver());
      return keep(store, 1) && keep(store, 2) && warnings.count() == 1 &&
             warnings.text().find(limit) != std::string::npos;
    }));
  }
}

TEST_CASE("many threads share one store") {
  const ScratchDirectory scratch;
  Warnings warnings;
  Store store(scratch.location(), warnings.receiver());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 25; ++round) {
        const int number = (thread * 7 + round) % 20;
        if (!has(store, number) && !keep(store, number)) ++wrong;
        if (!has(store, number)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(store.list().size() == 20);
  CHECK(warnings.count() == 0);
}
