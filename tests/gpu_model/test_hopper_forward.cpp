// Whole kernels of the forward's Hopper plans on the host model, byte for byte as the reference.
#include <doctest/doctest.h>

#include "tests/gpu_model/hopper_batch.hpp"

using namespace gpu_model;

namespace {

// Variants of hopper_plans.cpp.
constexpr int first_few_rows = 10;
bool is_ring(const HopperKernel& kernel) {
  return kernel.op == "forward" && kernel.variant < first_few_rows;
}
bool is_few_rows(const HopperKernel& kernel) {
  return kernel.op == "forward" && kernel.variant >= first_few_rows;
}
bool has_row_temperatures(const HopperKernel& ring) {
  return ring.variant == 2 || ring.variant == 4 || ring.variant == 7 || ring.variant == 9;
}
bool takes_any_address(const HopperKernel& ring) {
  return ring.variant == 3 || ring.variant == 4;
}

void check(const HopperKernel& kernel, const BatchShape& shape, int multiprocessors) {
  const std::string difference = check_kernel(kernel, shape, multiprocessors);
  CHECK_MESSAGE(difference.empty(), difference);
}

void check_few_rows(const BatchShape& shape) {
  for (const HopperKernel& kernel : hopper_kernels())
    if (is_few_rows(kernel)) check(kernel, shape, 20);
}

void check_rings(BatchShape shape, int multiprocessors) {
  for (const HopperKernel& kernel : hopper_kernels()) {
    if (!is_ring(kernel)) continue;
    shape.row_temperatures = has_row_temperatures(kernel);
    check(kernel, shape, multiprocessors);
  }
}

} // namespace

TEST_SUITE_BEGIN("few_rows");

TEST_CASE("every variant of the forward is here") {
  CHECK(missing_variants("forward") == std::vector<int>{});
}

TEST_CASE("few rows of all kinds") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) check_few_rows({.rows = 3, .seed = seed});
}

TEST_CASE("few rows of every kind, by the narrower kernels") {
  for (const HopperKernel& kernel : hopper_kernels())
    if (is_few_rows(kernel) && kernel.vocab_size <= 20001) check(kernel, {.seed = 5}, 20);
}

TEST_CASE("few rows with several ids, ignored ones, and other temperatures") {
  check_few_rows({.rows = 2, .seed = 6, .ids_per_row = 3, .row_padding = 1});
  check_few_rows({.rows = 3, .seed = 7, .ignored_of_8 = 5});
  check_few_rows({.rows = 2, .seed = 8, .temperature = 1.7F});
  check_few_rows({.rows = 3, .seed = 9, .row_temperatures = true});
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("rings");

// Rings and row buffers go round several times; the last rows are cut among the blocks.
TEST_CASE("rows of all kinds, round all rings") {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) check_rings({.rows = 35, .seed = seed}, 3);
  check_rings({.rows = 23, .seed = 4}, 6);
}

TEST_CASE("rings with several ids, ignored rows, and another temperature") {
  check_rings({.rows = 11, .seed = 5, .ids_per_row = 3, .row_padding = 2}, 4);
  check_rings({.rows = 30, .seed = 6, .ignored_of_8 = 4}, 4);
  check_rings({.rows = 30, .seed = 7, .ignored_of_8 = 7}, 4);
  check_rings({.rows = 15, .seed = 9, .temperature = 0.6F}, 2);
}

TEST_CASE("fewer rows than blocks") {
  for (const std::int64_t rows : {1, 2, 5}) check_rings({.rows = rows, .seed = static_cast<std::uint64_t>(rows)}, 6);
}

TEST_CASE("rows at any address") {
  for (const HopperKernel& kernel : hopper_kernels()) {
    if (!is_ring(kernel) || !takes_any_address(kernel)) continue;
    for (std::int64_t offset = 1; offset < 9; ++offset) {
      BatchShape shape{.rows = 13, .seed = static_cast<std::uint64_t>(offset), .offset = offset};
      shape.row_padding = offset % 3;
      shape.inner_rows = offset % 2 == 0 ? 4 : 0;
      shape.row_temperatures = has_row_temperatures(kernel);
      check(kernel, shape, 3);
    }
  }
}

TEST_SUITE_END();
