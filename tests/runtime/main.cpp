#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "tests/runtime/support.hpp"

int main(int argc, char** argv) {
  if (const int code = runtime_test::run_as_child(argc, argv); code >= 0) return code;
  return doctest::Context(argc, argv).run();
}
