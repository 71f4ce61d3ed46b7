// The programs run here and this process share one kernel store: that of all suites where ctest names one.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/tools/score_files.hpp"

int main(int argc, char** argv) {
  const bilogp::test::TemporaryDirectory store;
  ::setenv("BILOGP_CACHE_DIR", store.file("store").c_str(), 0);
  return doctest::Context(argc, argv).run();
}
