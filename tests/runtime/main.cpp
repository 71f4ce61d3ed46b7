#include "tests/run_cases.hpp"

#include "tests/runtime/support.hpp"

int main(int argc, char** argv) {
  if (const int code = runtime_test::run_as_child(argc, argv); code >= 0) return code;
  return bilogp::test::run_cases(argc, argv);
}
