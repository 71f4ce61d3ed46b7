// Tests of the CUDA back end on a driver and a compiler that are not there.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/cuda/fake/host_calls.hpp"

REGISTER_EXCEPTION_TRANSLATOR(const bilogp::Error& error) {
  return error.what();
}

int main(int argc, char** argv) {
  ::setenv("BILOGP_CUDA_DRIVER", BILOGP_FAKE_DRIVER, 1);
  ::setenv("BILOGP_NVRTC", BILOGP_FAKE_NVRTC, 1);
  ::setenv("BILOGP_CACHE_DIR", ":memory:", 1);
  fake::driver_state().devices = fake::device_models();
#if defined(__SANITIZE_THREAD__)
  bilogp::Runtime::set_num_threads(1); // of warmup: oneTBB is not built for ThreadSanitizer
#endif
  return doctest::Context(argc, argv).run();
}
