// What a main of doctest does, for the one source of a program that includes this: a filter that leaves no case, as
// the name of a suite that is called otherwise now, is a failure.
#pragma once

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

namespace bilogp::test {

class CaseCounter final : public doctest::IReporter {
public:
  explicit CaseCounter(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override { selected = stats.numTestCasesPassingFilters; }
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

  static inline unsigned selected = 1; // a mere listing of cases selects none, and is fine
};

REGISTER_LISTENER("case counter", 1, CaseCounter);

inline int run_cases(int argc, char** argv) {
  const int code = doctest::Context(argc, argv).run();
  if (code != 0 || CaseCounter::selected > 0) return code;
  std::fprintf(stderr, "no test case has that name or is in that suite; --list-test-cases shows those there are\n");
  return 1;
}

} // namespace bilogp::test
