// The suites that need a device are skipped, and say so, where there is none.
#include <cstdio>

#include "bilogp/error.hpp"
#include "tests/cuda/device_memory.hpp"
#include "tests/run_cases.hpp"

REGISTER_EXCEPTION_TRANSLATOR(const bilogp::Error& error) {
  return error.what();
}

int main(int argc, char** argv) {
  std::string why;
  if (cuda_test::devices(&why).empty()) {
    std::printf("skipped: these tests need a CUDA device. %s\n", why.c_str());
    return 0;
  }
  return bilogp::test::run_cases(argc, argv);
}
