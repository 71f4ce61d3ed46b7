#include "tests/run_cases.hpp"

int main(int argc, char** argv) {
  return bilogp::test::run_cases(argc, argv);
}
