// Whole kernels of the fused plans (forward and gradient in one pass) on the host model, byte for byte as the
// reference.
#include <doctest/doctest.h>

#include "tests/gpu_model/hopper_batch.hpp"

using namespace gpu_model;

namespace {

// On a card with room for so many clusters.
void check_fused(const BatchShape& shape, int clusters) {
  constexpr int blocks[] = {1, 2, 4, 8, 8};
  for (const HopperKernel& kernel : hopper_kernels()) {
    if (kernel.op != "with_gradient") continue;
    // The plans want rows that are stored to end in the tile where they count to.
    if (shape.spare_vectors > 0 && kernel.vocab_size % 1024 == 0) continue;
    const int needed = clusters * blocks[kernel.variant - 1];
    const std::string difference = check_kernel(kernel, shape, needed + (kernel.variant > 2 ? needed / 8 + 1 : 0));
    CHECK_MESSAGE(difference.empty(), difference);
  }
}

} // namespace

TEST_SUITE_BEGIN("fused");

TEST_CASE("every variant is here") {
  CHECK(missing_variants("with_gradient") == std::vector<int>{});
}

// More rows than a cluster has buffers for, and tiles than there are places, several times.
TEST_CASE("all kinds of rows, round all rings") {
  check_fused({.rows = 50, .seed = 1}, 1);
  check_fused({.rows = 40, .seed = 2}, 2);
}

TEST_CASE("rows apart, at another temperature") {
  check_fused({.rows = 17, .seed = 3, .row_padding = 3, .temperature = 0.6F}, 1);
}

TEST_CASE("many ignored rows") {
  check_fused({.rows = 30, .seed = 4, .ignored_of_8 = 4}, 1);
  check_fused({.rows = 25, .seed = 5, .ignored_of_8 = 7}, 1);
}

// Two of the kernels have whole spans in their last tile, which is as plain as the others then.
TEST_CASE("more columns are stored than count") {
  check_fused({.rows = 50, .seed = 9, .spare_vectors = 1}, 1);
  check_fused({.rows = 40, .seed = 10, .spare_vectors = 8}, 1);
}

TEST_CASE("fewer rows than clusters") {
  for (std::uint64_t seed = 6; seed <= 7; ++seed) check_fused({.rows = 1, .seed = seed}, 3);
  check_fused({.rows = 2, .seed = 8}, 3);
}

TEST_SUITE_END();
