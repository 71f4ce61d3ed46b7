// Every kernel of the plain plan on every kind of row.
#include <doctest/doctest.h>

#include "tests/gpu_model/model_batch.hpp"

using namespace gpu_model;

TEST_SUITE_BEGIN("operators");

static void check(const std::string& difference) {
  CHECK_MESSAGE(difference.empty(), difference);
}

TEST_CASE("every kind of row, a few tiles wide") {
  for (const Storage storage : all_storages) check(check_shape({.storage = storage, .columns = 2500}, {700, 1024, 2305}));
}

TEST_SUITE_END();
