#include <doctest/doctest.h>

#include "bilogp/bilogp.h"

extern "C" int c_abi_works(void);

TEST_CASE("the C interface, from C") {
  const int line = c_abi_works();
  CAPTURE(bilogp_last_error());
  INFO("the expectation in this line of test_c_abi.c does not hold");
  CHECK(line == 0);
}
